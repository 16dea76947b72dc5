/** A host that starts the plugin of its argument, a JSON spec, says so on stdout, and waits to be killed; or ends of its own accord. */

import { KERNEL_COOKIE } from "#src/goplugin/protocol.js";
import { startPlugin } from "#src/subscribers/plugin/start.js";

const { path, args, environment, stay } = JSON.parse(process.argv[2]);
const said = [];
const started = await startPlugin({
  provider: {
    name: "peer",
    sourceText: path,
    source: { kind: "plugin", path, launch: { args, env: [], startTimeoutMs: 10_000, autoMtls: "off" } },
    sensitive: [],
    place: { file: "agent.hcl", line: 1, col: 1 },
  },
  path,
  args,
  environment,
  cookie: KERNEL_COOKIE,
  protocolVersion: 1,
  autoMtls: "off",
  startTimeoutMs: 10_000,
  maxMessageBytes: 1 << 20,
  redact: (text) => text,
  log: ({ message }) => said.push(message),
});
process.stdout.write(`${JSON.stringify({ ok: started.ok, message: started.message, said })}\n`);
if (stay) setInterval(() => {}, 60_000);
