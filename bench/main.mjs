// npm run bench [in-process] [grpc] [replay] [recording] [recording-server] [transfer] [archive] [plugin] [messages] [deliveries]: the figures of the README. Peers run in the same process, right before or in turn.
import { cpus } from "node:os";
import { archived } from "./archive.mjs";
import { durableDeliveries } from "./deliveries.mjs";
import { overGrpc } from "./grpc.mjs";
import { inProcess } from "./in-process.mjs";
import { messages } from "./messages.mjs";
import { plugins } from "./plugin.mjs";
import { recording } from "./recording.mjs";
import { recordingOnServer } from "./recording-server.mjs";
import { replaying } from "./replay.mjs";
import { transferring } from "./transfer.mjs";

const suites = new Map([
  ["in-process", inProcess],
  ["grpc", overGrpc],
  ["replay", replaying],
  ["recording", recording],
  ["recording-server", recordingOnServer],
  ["transfer", transferring],
  ["archive", archived],
  ["plugin", plugins],
  ["messages", messages],
  ["deliveries", durableDeliveries],
]);
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !suites.has(name));
if (unknown !== undefined) {
  console.error(`no benchmark "${unknown}": there are ${[...suites.keys()].join(", ")}`);
  process.exit(2);
}
console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "unknown processor"}`);
for (const [name, run] of suites) if (asked.length === 0 || asked.includes(name)) await run();
