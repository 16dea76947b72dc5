/** Runs of message hooks in words. All foreign text in them is safe to print. */
import type { RunEnd } from "../replay/run-end.js";
import type { Said, Timeline, TimelineLink } from "../replay/timeline.js";
import type { DefinedField } from "../replay/timeline-change.js";
import { foreign } from "./text.js";

/** Why it came to that, in a sentence. */
export function runHeadline(timeline: Timeline, end: RunEnd): string {
  const { links, verdict } = timeline;
  const by = foreign(verdict.decidedBy ?? "");
  switch (end) {
    case "claimed":
      return `Claimed by ${by}, whose result is the answer.`;
    case "unclaimed":
      return `Nobody claimed it. ${asked(links)}`;
    case "passed":
      return `${passed(timeline)} ${asked(links)}`;
    case "cancelled":
      return verdict.reason === null
        ? `Not to be sent: cancelled by ${by}, who gave no reason.`
        : `Not to be sent: cancelled by ${by}: ${foreign(verdict.reason)}`;
    case "blocked":
      return `Not to be sent: ${by} failed, and a failure blocks here. ${foreign(verdict.reason ?? "")}`;
    case "notified":
      return asked(links, "Told");
  }
}

function passed({ composition, links, verdict, versions }: Timeline): string {
  const final = versions.find(({ ref }) => ref.digest === verdict.payload);
  const last = links.findLast((link) => final !== undefined && brings(link, final.number));
  if (final === undefined || final.number === 1 || last === undefined) return "To be sent as it came.";
  const what = composition === "rewrite" ? "with the content of" : "as it was left by";
  return `To be sent ${what} ${foreign(last.id)}.`;
}

function brings({ said, change }: TimelineLink, version: number): boolean {
  if (said.kind !== "rewritten") return false;
  const content = said.defines.find(({ field }) => field === "content");
  return said.defines.length === 0 ? change?.to === version : content?.version === version;
}

/** `Asked: a, b. Failed: b. Skipped: c.` */
function asked(links: readonly TimelineLink[], calling = "Asked"): string {
  const groups = [
    [calling, links.filter(({ called }) => called !== null)],
    ["Failed", links.filter(({ said }) => isFailure(said))],
    ["Skipped", links.filter(({ said }) => said.kind === "skipped")],
  ] as const;
  const told = groups.filter(([title, group]) => title === calling || group.length > 0);
  return told.map(([title, group]) => `${title}: ${group.length === 0 ? "nobody" : names(group)}.`).join(" ");
}

function names(links: readonly TimelineLink[]): string {
  return links.map(({ id }) => foreign(id)).join(", ");
}

export function isFailure(said: Said): boolean {
  return said.kind === "failed" || said.kind === "invalid" || said.kind === "timeout";
}

/** What a handler brought: `content as v2, metadata as v3`; what a later one of a rewrite defined anew is said. */
export function definedWords(defines: readonly DefinedField[], link: TimelineLink, { links }: Timeline): string {
  return defines
    .map(({ field, version }) => {
      const later = links.find(({ index, said }) => index > link.index && definesField(said, field));
      const overruled = later === undefined ? "" : ` (${foreign(later.id)} defined it anew)`;
      return `${field === "cancelReason" ? "cancel reason" : field} as v${version}${overruled}`;
    })
    .join(", ");
}

/** Content that comes with a cancellation takes no other's place. */
function definesField(said: Said, field: DefinedField["field"]): boolean {
  const counts = said.kind === "rewritten" || (said.kind === "cancelled" && field !== "content");
  return counts && said.defines.some((one) => one.field === field);
}
