import { type Divergence, Verifier } from "../replay/verify.js";
import { type VerifyPart, verifyAll } from "../replay/verify-all.js";
import type { EventStore } from "../store/port.js";
import type { CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import type { Output } from "./output.js";
import { withLedger } from "./reading.js";
import { SELECTION_OPTIONS, type Selection, selectedStreams, selectionOf, unknownSession } from "./select.js";
import { columns } from "./table.js";
import { foreign } from "./text.js";

/** Divergences that people are shown; JSON has all of them. */
const SHOWN = 50;

type Totals = {
  readonly checked: number;
  /** Checked and without a divergence, open ones too. */
  readonly ok: number;
  readonly open: number;
  readonly erased: number;
  readonly diverged: readonly Divergence[];
};

export const verify: CommandFile = {
  name: "verify",
  summary: "proves that the record is what it replays to, and names the first divergence of each dispatch",
  args: "[id...]",
  options: [...SELECTION_OPTIONS, { flags: "--jobs <n>", description: "threads for --session and --all (default 1)" }],
  examples: [
    { command: "hookledger verify --all", does: "the whole ledger; exit 5 if anything diverges" },
    { command: "hookledger verify 01JZ8", does: "one dispatch" },
    { command: "hookledger verify --all --jobs 4", does: "a large ledger, in four threads" },
  ],
  async run(call) {
    const selection = selectionOf(call);
    const jobs = call.whole("jobs", { min: 1, max: 64 }) ?? 1;
    const { out } = call;
    const totals = await withLedger(call, async (store) => totalsOf(parts(store, selection, jobs, call.store), out));
    await printTotals(totals, out);
    return totals.diverged.length === 0 ? EXIT.done : EXIT.divergence;
  },
};

async function* parts(store: EventStore, selection: Selection, jobs: number, url: string): AsyncGenerator<VerifyPart> {
  if (selection.kind !== "ids") {
    const session = selection.kind === "session" ? selection.session : undefined;
    let checked = 0;
    for await (const part of verifyAll(store, session, jobs, url)) {
      checked += part.checked;
      yield part;
    }
    if (checked === 0 && session !== undefined) throw unknownSession(session);
    return;
  }
  const verifier = new Verifier(store);
  for await (const stream of selectedStreams(store, selection)) {
    const { open, diverged } = await verifier.verify(stream);
    yield { checked: 1, open: open ? 1 : 0, diverged: diverged === null ? [] : [diverged] };
  }
}

async function totalsOf(parts: AsyncIterable<VerifyPart>, out: Output): Promise<Totals> {
  let checked = 0;
  let open = 0;
  const diverged: Divergence[] = [];
  for await (const part of parts) {
    checked += part.checked;
    open += part.open;
    diverged.push(...part.diverged);
    out.progress(`verified ${checked} dispatches, ${diverged.length} diverge`);
  }
  diverged.sort((a, b) => (a.dispatchId < b.dispatchId ? -1 : 1));
  return { checked, ok: checked - diverged.length, open, erased: 0, diverged };
}

async function printTotals(totals: Totals, out: Output): Promise<void> {
  if (out.json) {
    const diverged = totals.diverged.map(({ dispatchId, revision, kind, expected, found }) => ({
      dispatchId,
      revision,
      kind,
      expected,
      found,
    }));
    await out.document({ ...totals, diverged });
    return;
  }
  const { style } = out;
  const { checked, open, diverged } = totals;
  const counts = [`${checked} checked`, ...(open === 0 ? [] : [`${open} open`])].join(", ");
  if (diverged.length === 0) {
    await out.print(`${style.bold(style.green("record = replay"))}  ${counts}`);
    return;
  }
  const rows = diverged.slice(0, SHOWN).flatMap(({ dispatchId, revision, kind, expected, found }) => [
    "",
    `${style.red(kind)}  dispatch ${foreign(dispatchId)}, revision ${revision}`,
    ...columns([
      [{ text: "  expected", paint: style.dim }, foreign(expected)],
      [{ text: "  found", paint: style.dim }, foreign(found)],
    ]),
  ]);
  const more = diverged.length > SHOWN ? ["", `… and ${diverged.length - SHOWN} more; --json prints all`] : [];
  const verdict = `${diverged.length} ${diverged.length === 1 ? "diverges" : "diverge"}`;
  await out.print([`${style.bold(style.red(verdict))}  ${counts}`, ...rows, ...more].join("\n"));
}
