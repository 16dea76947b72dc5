/** What each subscriber saw, said and changed. */
import type { Timeline, TimelineLink } from "../replay/timeline.js";
import { changeLines } from "./show-changes.js";
import { toneOf } from "./show-chart.js";
import { saidWords } from "./show-words.js";
import type { Style } from "./style.js";
import { columns } from "./table.js";
import { foreign, foreignBlock, shortDigest } from "./text.js";
import { showDuration } from "./time.js";

type Fact = readonly [label: string, text: string];

export function chainLines(
  timeline: Timeline,
  style: Style,
  columnsWide: number,
  maxChanges: number,
): readonly string[] {
  return timeline.links.flatMap((link) => [
    headOf(link, style),
    ...columns(
      factsOf(link, timeline, style).map(([label, text]) => [{ text: `     ${label}`, paint: style.dim }, text]),
    ),
    ...longText(link),
    ...(link.change === null ? [] : changeLines(link.change, timeline, style, columnsWide, maxChanges)),
  ]);
}

function headOf(link: TimelineLink, style: Style): string {
  const { producer } = link;
  const version = producer.version === undefined ? "" : ` ${foreign(producer.version)}`;
  const timeout = link.timeoutMs === null ? "no timeout" : `timeout ${showDuration(link.timeoutMs)}`;
  const facts = [
    link.shadow ? `${link.mode}, shadow` : link.mode,
    `${foreign(producer.name)}${version} from ${foreign(producer.source)}`,
    timeout,
    ...(producer.digest === undefined ? [] : [`file ${shortDigest(producer.digest)}`]),
  ];
  return `  #${link.index} ${style.bold(foreign(link.id))}  ${style.dim(facts.join("  ·  "))}`;
}

function factsOf(link: TimelineLink, timeline: Timeline, style: Style): readonly Fact[] {
  const { called, settled, said, change, lagMs } = link;
  const words = saidWords(link, timeline);
  const facts: Fact[] = [];
  if (called !== null) facts.push(["saw", `${sawText(called.saw, link, timeline)}${moment(called.atNs)}`]);
  const late = settled?.afterConclusion ? ", after the conclusion" : "";
  const text = hasLongText(link) ? said.kind : words.text;
  facts.push(["said", `${toneOf(style, words.tone)(text)}${settled === null ? "" : moment(settled.atNs)}${late}`]);
  if (lagMs !== null) facts.push(["lag", `the deadline was noticed ${showDuration(lagMs)} late`]);
  for (const warning of link.warnings) facts.push(["warning", style.yellow(foreign(warning))]);
  if (said.kind === "policy" && change !== null && change.from !== change.to)
    facts.push(["changed", `v${change.from} → v${change.to}`]);
  return facts;
}

function moment(atNs: number | null): string {
  return atNs === null ? "" : `  at ${showDuration(atNs / 1e6)}`;
}

/** The version, and whether it is the one that the subscriber before saw. */
function sawText(version: number, link: TimelineLink, { versions, links }: Timeline): string {
  const ref = versions[version - 1]?.ref;
  const before = links.slice(0, link.index).findLast(({ called }) => called !== null);
  const same = before?.called?.saw === version ? `same as #${before.index}` : originText(version, { versions, links });
  return `v${version} ${ref === undefined ? "…" : shortDigest(ref.digest)}, ${same}`;
}

function originText(version: number, { versions, links }: Pick<Timeline, "versions" | "links">): string {
  const by = versions[version - 1]?.by ?? null;
  return by === null ? "the input" : `made by ${foreign(links[by]?.id ?? `#${by}`)}`;
}

/** Several lines of a subscriber's own words stand below, behind a bar. */
function longText(link: TimelineLink): readonly string[] {
  const text = wordsOf(link);
  return text === null || !hasLongText(link) ? [] : [foreignBlock(text, "       ")];
}

function hasLongText(link: TimelineLink): boolean {
  return wordsOf(link)?.includes("\n") ?? false;
}

function wordsOf({ said }: TimelineLink): string | null {
  return said.kind === "deny" || said.kind === "cancelled" ? said.reason : null;
}
