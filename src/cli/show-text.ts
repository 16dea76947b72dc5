/** A timeline for people. Pure: the same timeline, the same text. */
import type { Timeline } from "../replay/timeline.js";
import type { LegibleRecord } from "../replay/timeline-record.js";
import type { Divergence } from "../replay/verify.js";
import type { FoldFailure } from "../store/record/fold.js";
import { chainLines } from "./show-chain.js";
import { payloadLines } from "./show-changes.js";
import { chartLines } from "./show-chart.js";
import { planLinesText } from "./show-plan.js";
import { headline, inFlightNames } from "./show-words.js";
import type { Style } from "./style.js";
import { columns } from "./table.js";
import { foreign } from "./text.js";
import { showDuration } from "./time.js";
import { verdictWord } from "./verdict.js";

export type View = {
  readonly style: Style;
  /** Columns of the terminal. */
  readonly width: number;
  readonly verbose: boolean;
};

const FEW = { changes: 20, members: 16 };
const MANY = { changes: 1000, members: 1000 };

export function timelineText(timeline: Timeline, diverged: Divergence | null, view: View): string {
  const { style, width, verbose } = view;
  const limits = verbose ? MANY : FEW;
  return [
    ...headerLines(timeline, diverged, style),
    ...section("Chain", chartLines(timeline, style, width), style),
    ...section("Subscribers", chainLines(timeline, style, width, limits.changes), style),
    ...section("Plan", planLinesText(timeline, style), style),
    ...section("Payloads", payloadLines(timeline, style, width, limits.members), style),
  ].join("\n");
}

/** Of a record whose start cannot be told. */
export function unreadableText(record: LegibleRecord, diverged: Divergence | null, style: Style): string {
  return [
    `${style.bold(style.red("unreadable"))}  ${style.dim(foreign(record.dispatchId))}`,
    "  Nothing can be told of this dispatch but that it was recorded.",
    ...columns([
      label("events", `${record.recorded} recorded, none of them can be told`, style),
      ...warningRows(record.failure, diverged, style),
    ]),
  ].join("\n");
}

type Row = readonly [{ readonly text: string; readonly paint: (text: string) => string }, string];

function headerLines(timeline: Timeline, diverged: Divergence | null, style: Style): readonly string[] {
  const { verdict, violation, end } = timeline;
  const { text, tone } = verdictWord({ ...verdict, end });
  return [
    `${style.bold(style[tone](text))}  ${foreign(verdict.point)}  ${style.dim(foreign(verdict.dispatchId))}`,
    `  ${headline(timeline)}`,
    ...columns([...factRows(timeline, diverged, style), ...warningRows(violation, diverged, style)]),
  ];
}

function factRows(timeline: Timeline, diverged: Divergence | null, style: Style): readonly Row[] {
  const { startedAt, session, turn, redacted, blocksOnFailure, violation } = timeline;
  const verified = diverged === null && violation === null ? "; verified" : "";
  const rows = [
    label("when", `${startedAt === null ? "unknown" : foreign(startedAt)}, ${durationText(timeline)}`, style),
    label("record", recordText(timeline) + verified, style),
  ];
  const running = inFlightNames(timeline);
  if (running !== "") rows.push(label("in flight", running, style));
  if (session !== null) rows.push(label("session", foreign(session), style));
  if (turn !== null) rows.push(label("turn", foreign(turn), style));
  if (redacted) rows.push(label("redacted", REDACTED, style));
  if (blocksOnFailure) rows.push(label("on failure", BLOCKS, style));
  return rows;
}

const BLOCKS = "blocks: a handler that fails or hangs suppresses the delivery";
const REDACTED = "payloads are redacted copies; equal digests do not prove that the originals were equal";

function durationText({ conclusion, spanNs }: Timeline): string {
  return conclusion?.atNs == null
    ? `not concluded after ${showDuration(spanNs / 1e6)}`
    : `took ${showDuration(conclusion.atNs / 1e6)}`;
}

function recordText({ events, engineVersion }: Timeline): string {
  const told = events.told === events.recorded ? "" : `${events.told} of `;
  const writer = engineVersion === null ? "" : `, written by hookledger ${foreign(engineVersion)}`;
  return `${told}${events.recorded} events${writer}`;
}

function warningRows(violation: FoldFailure | null, diverged: Divergence | null, style: Style): readonly Row[] {
  const rows: Row[] = [];
  if (violation !== null) {
    const { revision, kind, expected, found } = violation;
    const text = `the record breaks off at event ${revision} (${kind}): expected ${foreign(expected)}, found ${foreign(found)}`;
    rows.push(label("WARNING", style.red(text), style));
  }
  if (diverged !== null) {
    const { revision, kind, expected, found, dispatchId } = diverged;
    const text = `the record does not verify at event ${revision} (${kind}): expected ${foreign(expected)}, found ${foreign(found)}`;
    if (violation === null) rows.push(label("WARNING", style.red(text), style));
    rows.push(
      label(
        "",
        `what follows is what stands in the ledger, not what is proven: hookledger verify ${foreign(dispatchId)}`,
        style,
      ),
    );
  }
  return rows;
}

function label(text: string, value: string, style: Style): Row {
  return [{ text: `  ${text}`, paint: text === "WARNING" ? style.red : style.dim }, value];
}

function section(title: string, lines: readonly string[], style: Style): readonly string[] {
  return lines.length === 0 ? [] : ["", style.bold(title), ...lines];
}
