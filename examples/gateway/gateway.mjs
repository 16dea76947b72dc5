// The gateway, a process of its own:  node gateway.mjs <store URL> <URL of the outbound channel>
//
// Prints a JSON line for what happens: { webhook } once it listens, { sent } for each line of the delivery logger. SIGTERM ends it when
// everything that it has taken is answered.
import { createGateway } from "hookledger/messages";
import { agent } from "./agent.mjs";
import { httpChannel } from "./http-channel.mjs";
import { claimer } from "./plugins/claimer.mjs";
import { deliveryLogger } from "./plugins/delivery-logger.mjs";
import { rewriter } from "./plugins/rewriter.mjs";
import { secretBlocker } from "./plugins/secret-blocker.mjs";
import { startWebhook } from "./webhook.mjs";

const [store, channelUrl] = process.argv.slice(2);
if (store === undefined || channelUrl === undefined) {
  process.stderr.write("node gateway.mjs <store URL> <URL of the outbound channel>\n");
  process.exit(2);
}
const print = (document) => process.stdout.write(`${JSON.stringify(document)}\n`);

const gateway = await createGateway({
  store,
  plugins: [claimer, secretBlocker, rewriter, deliveryLogger((sent) => print({ sent }))],
  // A plugin that hangs holds nobody up for longer, and a reply that could not be looked at for secrets is not sent.
  hooks: { timeoutMs: 2_000, onFailure: { message_sending: "block" } },
  // What the channel refuses for now is kept in the ledger's file, and tried again.
  durable: { retry: { baseMs: 200, capMs: 60_000 } },
  channels: [httpChannel({ url: channelUrl })],
  agent,
  redact: ["sk-[A-Za-z0-9]{20,}"],
  log: ({ level, provider, message }) => process.stderr.write(`${level} ${provider}: ${message}\n`),
});
const webhook = await startWebhook({ receive: (message) => gateway.receive(message) });
print({ webhook: webhook.url });

let ending = false;
async function end() {
  if (ending) return;
  ending = true;
  // The gateway gives up what hangs, and so lets the webhook answer.
  await Promise.all([webhook.close(), gateway.close()]);
  process.exit();
}
process.on("SIGTERM", end);
process.on("SIGINT", end);
// Whoever started it has ended.
process.stdin.resume().on("end", end);
