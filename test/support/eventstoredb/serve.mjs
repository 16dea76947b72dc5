// @ts-check
// The double of EventStoreDB in a process of its own: node serve.mjs [port]. Prints one line with its URL, ends on SIGTERM or SIGINT.
import { startDouble } from "./double.mjs";

const double = await startDouble({ port: Number(process.argv[2] ?? 0) });
process.stdout.write(`TEST DOUBLE, no EventStoreDB, keeps everything in memory: ${double.url}\n`);
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => double.stop().then(() => process.exit(0)));
