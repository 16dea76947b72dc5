import { type Divergence, Verifier } from "../replay/verify.js";
import { type VerifyPart, verifyAll } from "../replay/verify-all.js";
import { openBundle } from "../store/bundle/store.js";
import type { EventStore } from "../store/port.js";
import { type BundleFinding, bundleFinding, originOf } from "./bundle-finding.js";
import type { CommandFile } from "./command.js";
import { EXIT } from "./exit.js";
import type { Output } from "./output.js";
import { withLedger } from "./reading.js";
import { bundlePath } from "./refusals.js";
import { SELECTION_OPTIONS, type Selection, selectedStreams, selectionOf, unknownSession } from "./select.js";
import type { Style } from "./style.js";
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

/** `bundle` and what it says of its making, foreign text: of --offline; null for a ledger. */
type Verified = { readonly totals: Totals; readonly bundle: BundleFinding | null; readonly origin: string | null };

export const verify: CommandFile = {
  name: "verify",
  summary: "proves that the record is what it replays to, and names the first divergence of each dispatch",
  args: "[id...]",
  options: [
    ...SELECTION_OPTIONS,
    { flags: "--jobs <n>", description: "threads for --session and --all (default 1)" },
    {
      flags: "--offline <bundle>",
      description: "an evidence bundle instead of the ledger, by itself: all of it, if nothing else is named",
    },
  ],
  examples: [
    { command: "hookledger verify --all", does: "the whole ledger; exit 5 if anything diverges" },
    { command: "hookledger verify 01JZ8", does: "one dispatch" },
    { command: "hookledger verify --all --jobs 4", does: "a large ledger, in four threads" },
    { command: "hookledger verify --offline evidence.hlb", does: "an evidence bundle, without any ledger" },
  ],
  async run(call) {
    const offline = call.text("offline");
    const narrowed = call.args.length > 0 || call.text("session") !== undefined || call.flag("all");
    const selection = offline === undefined || narrowed ? selectionOf(call) : { kind: "all" as const };
    const jobs = call.whole("jobs", { min: 1, max: 64 }) ?? 1;
    const { out } = call;
    const verified =
      offline === undefined
        ? await withLedger(call, async (store) => ({
            totals: await totalsOf(parts(store, selection, jobs, call.store), out),
            bundle: null,
            origin: null,
          }))
        : await verifiedOffline(offline, selection, jobs, out);
    await printTotals(verified, out);
    const { totals, bundle } = verified;
    return totals.diverged.length === 0 && bundle?.ok !== false ? EXIT.done : EXIT.divergence;
  },
};

/** The digest is of the whole bundle, whatever is selected. */
async function verifiedOffline(path: string, selection: Selection, jobs: number, out: Output): Promise<Verified> {
  const store = openBundle(bundlePath(path));
  try {
    const bundle = bundleFinding(store);
    const totals = await totalsOf(parts(store, selection, jobs, store.url), out);
    return { totals, bundle, origin: originOf(store) };
  } finally {
    await store.close();
  }
}

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

async function printTotals({ totals, bundle, origin }: Verified, out: Output): Promise<void> {
  if (out.json) {
    const diverged = totals.diverged.map(({ dispatchId, revision, kind, expected, found }) => ({
      dispatchId,
      revision,
      kind,
      expected,
      found,
    }));
    await out.document({ ...totals, diverged, ...(bundle === null ? {} : { bundle }) });
    return;
  }
  const { style } = out;
  const { checked, open, diverged } = totals;
  const counts = [`${checked} checked`, ...(open === 0 ? [] : [`${open} open`])].join(", ");
  const digest = bundle === null ? [] : bundleLines(bundle, style);
  const says = origin === null ? [] : [`${style.dim("says")}    ${foreign(origin)}`];
  if (diverged.length === 0) {
    await out.print([`${verdictOn(bundle, style)}  ${counts}`, ...digest, ...says].join("\n"));
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
  await out.print([`${style.bold(style.red(verdict))}  ${counts}`, ...digest, ...says, ...rows, ...more].join("\n"));
}

/** Where no dispatch diverges. */
function verdictOn(bundle: BundleFinding | null, style: Style): string {
  if (bundle === null || bundle.ok) return style.bold(style.green("record = replay"));
  return style.bold(style.red(bundle.recorded === null ? "unfinished bundle" : "not the bundle that it says it is"));
}

function bundleLines({ digest, detail }: BundleFinding, style: Style): readonly string[] {
  if (detail === null) return [`${style.dim("digest")}  ${digest}`];
  return [`${style.red("bundle")}  ${foreign(detail)}`];
}
