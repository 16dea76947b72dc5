import { HookledgerError } from "../errors.js";
import { openStore } from "../store/open.js";
import { type Collected, collectsGarbage } from "../store/port.js";
import type { CommandCall, CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import { withLedger } from "./reading.js";

/** ms */
const DEFAULT_GRACE = 24 * 3_600_000;

export const gc: CommandFile = {
  name: "gc",
  summary: "removes archived payloads that no dispatch refers to",
  options: [
    { flags: "--dry-run", description: "only tell what would be removed" },
    {
      flags: "--grace <duration>",
      description: "on EventStoreDB: how long what was found unreferenced is kept before it is removed (24h)",
    },
  ],
  examples: [
    { command: "hookledger gc --dry-run", does: "see first" },
    { command: "hookledger gc", does: "remove them; on a server mark them, for a run after the grace" },
  ],
  async run(call) {
    const options = {
      dryRun: call.flag("dryRun"),
      now: Date.now(),
      graceMs: call.duration("grace") ?? DEFAULT_GRACE,
    };
    // A ledger that is not there is not made: reading says so first.
    await withLedger(call, async () => {});
    const store = await openStore(call.store, { mode: options.dryRun ? "read" : "write" });
    let collected: Collected;
    try {
      if (!collectsGarbage(store))
        throw new HookledgerError("HL_STORE_READONLY", `${store.url} is only read: nothing is collected in it`);
      collected = await store.collectGarbage(options, (events) => call.out.progress(`${events} events read`));
    } finally {
      await store.close();
    }
    await print(collected, call, options.dryRun);
    return EXIT.done;
  },
};

async function print(collected: Collected, { out }: CommandCall, dryRun: boolean): Promise<void> {
  const { kept, removed, removedBytes, marked } = collected;
  if (out.json) {
    await out.document({ kept, removed, removedBytes, marked });
    return;
  }
  const { green, yellow } = out.style;
  const removing =
    removed === 0 ? green("nothing to remove") : yellow(`${removed} ${dryRun ? "would be removed" : "removed"}`);
  const bytes = removed === 0 ? "" : ` (${showBytes(removedBytes)})`;
  const later = marked === 0 ? "" : `, ${marked} marked: to be removed by a run after the grace`;
  await out.print(`${removing}${bytes}${later}, ${kept} kept`);
}

/** `640 bytes`, `1.9 MB`. */
function showBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  return `${value >= 100 ? value.toFixed(0) : value.toPrecision(2)} ${units[unit]}`;
}
