import { type Recovered, recover as recoverStreams } from "../replay/recover.js";
import { openStore } from "../store/open.js";
import type { CommandCall, CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import type { Output } from "./output.js";
import { withLedger } from "./reading.js";
import { type Cell, columns } from "./table.js";
import { foreign } from "./text.js";

type Closed = Extract<Recovered, { kind: "closed" }>;
type Skipped = Extract<Recovered, { kind: "skipped" }>;

export const recover: CommandFile = {
  name: "recover",
  summary: "closes what a crash left open; it never allows",
  options: [
    { flags: "--dry-run", description: "only tell what would be closed" },
    {
      flags: "--older-than <duration>",
      description: "where nobody can tell whether a writer lives: only what has been silent for longer (30s, 10m, 2h)",
    },
  ],
  examples: [
    { command: "hookledger recover --dry-run", does: "see first" },
    { command: "hookledger recover", does: "close them; a second run finds nothing" },
  ],
  async run(call) {
    const olderThanMs = call.duration("olderThan");
    const dryRun = call.flag("dryRun");
    const options = { dryRun, now: Date.now(), ...(olderThanMs === undefined ? {} : { olderThanMs }) };
    // A ledger that is not there is not made: reading says so first.
    await withLedger(call, async () => {});
    const store = await openStore(call.store, { mode: dryRun ? "read" : "write" });
    const closed: Closed[] = [];
    const skipped: Skipped[] = [];
    try {
      for await (const recovered of recoverStreams(store, options)) {
        if (recovered.kind === "closed") closed.push(recovered);
        else skipped.push(recovered);
        call.out.progress(`${closed.length} closed, ${skipped.length} left alone`);
      }
    } finally {
      await store.close();
    }
    await print(closed, skipped, call, dryRun);
    return EXIT.done;
  },
};

async function print(
  closed: readonly Closed[],
  skipped: readonly Skipped[],
  { out }: CommandCall,
  dryRun: boolean,
): Promise<void> {
  if (out.json) {
    await out.document({
      closed: closed.map(({ dispatchId, status, cause }) => ({ dispatchId, status, cause })),
      skipped: skipped.map(({ dispatchId, reason }) => ({ dispatchId, reason })),
    });
    return;
  }
  const closing = dryRun ? "would be closed" : "closed";
  if (closed.length + skipped.length === 0) {
    await out.print(`${out.style.green("nothing is open")}`);
    return;
  }
  await out.print(
    [`${closed.length} ${closing}, ${skipped.length} left alone`, ...lines(closed, skipped, out)].join("\n"),
  );
}

function lines(closed: readonly Closed[], skipped: readonly Skipped[], { style }: Output): readonly string[] {
  return columns([
    ...closed.map(({ dispatchId, status, cause }): Cell[] => [
      `  ${foreign(dispatchId)}`,
      { text: status, paint: status === "decided" ? style.yellow : style.red },
      cause ?? "",
    ]),
    ...skipped.map(({ dispatchId, reason }): Cell[] => [
      `  ${foreign(dispatchId)}`,
      { text: "left alone", paint: style.dim },
      foreign(reason),
    ]),
  ]);
}
