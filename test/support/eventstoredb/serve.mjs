// @ts-check
// The double of EventStoreDB in a process of its own: node serve.mjs [port] [features as JSON].
// Prints one line, which ends with its URL; ends on SIGTERM or SIGINT, and when its standard input does.
import { startDouble } from "./double.mjs";

const [port = "0", features = "{}"] = process.argv.slice(2);
const double = await startDouble({ port: Number(port), features: JSON.parse(features) });
process.stdout.write(`TEST DOUBLE, no EventStoreDB, keeps everything in memory: ${double.url}\n`);

async function end() {
  await double.stop();
  process.exit(0);
}
process.once("SIGTERM", end);
process.once("SIGINT", end);
process.stdin.once("end", end).resume();
