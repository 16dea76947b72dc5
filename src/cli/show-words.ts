/** The facts of a timeline in words. All foreign text in them is safe to print. */
import type { AbortCause } from "../core/events.js";
import type { NotCalled, Said, Timeline, TimelineLink } from "../replay/timeline.js";
import { definedWords, isFailure, runHeadline } from "./show-words-handlers.js";
import { foreign } from "./text.js";
import { showDuration } from "./time.js";

/** Why it came out so, in a sentence. */
export function headline(timeline: Timeline): string {
  const { verdict, withdrawn } = timeline;
  switch (verdict.status) {
    case "decided":
      if (timeline.end !== null) return runHeadline(timeline, timeline.end);
      return verdict.decision === "deny" ? denial(timeline) : allowance(timeline);
    case "open":
      return timeline.violation === null
        ? "No verdict is recorded: it is under way, or its process ended (hookledger recover closes it then)."
        : "The verdict cannot be told: the record breaks off before it.";
    case "aborted": {
      if (withdrawn === null) return abortion(timeline);
      const by = foreign(withdrawn.decidedBy);
      return `Not allowed. Decided ${withdrawn.decision} by ${by}, and taken back: the caller had been told no.`;
    }
  }
}

function denial(timeline: Timeline): string {
  const { decidedBy, reason } = timeline.verdict;
  const denier = timeline.links.find(({ id }) => id === decidedBy);
  if (denier === undefined) return `Denied by ${foreign(decidedBy ?? "")}.`;
  const { said } = denier;
  const who = nameOf(denier);
  switch (said.kind) {
    case "timeout":
      return said.own
        ? `Denied because ${who} gave no answer within ${showDuration(said.budgetMs)}: a timeout, not a refusal.`
        : `Denied because the chain budget ran out on ${who}, which had ${showDuration(said.budgetMs)} left: a timeout, not a refusal.`;
    case "failed":
      return `Denied because ${who} failed, not by its will: ${said.error.category}: ${foreign(said.error.message)}`;
    case "invalid":
      return `Denied because ${who} gave no valid answer: ${said.error.category}: ${foreign(said.error.message)}`;
    case "policy":
      return `Denied by ${who}: every item of the plan is denied.`;
    case "ack":
    case "allow":
    case "transformed":
    case "claimed":
    case "declined":
    case "rewritten":
    case "deny":
    case "cancelled":
    case "lost":
    case "in-flight":
    case "skipped":
    case "not-called":
      return reason === null ? `Denied by ${who}, who gave no reason.` : `Denied by ${who}: ${foreign(reason)}`;
  }
}

function allowance(timeline: Timeline): string {
  const { verdict, vetoBearing, links } = timeline;
  if (!vetoBearing) return "The chain ran to its end. Nobody can deny at this point.";
  const asked = links.filter(({ mode, shadow, called }) => (mode === "veto" || mode === "policy") && !shadow && called);
  const names = asked.map(({ id }) => foreign(id)).join(", ");
  const who = asked.length === 0 ? "Nobody in the chain could deny." : `Nobody objected. Asked: ${names}.`;
  return verdict.allowed ? who : `Only item by item: ${countsOf(verdict.planDecisions)}. ${who}`;
}

function abortion({ verdict, links, abortedBy, composition }: Timeline): string {
  const nothing = composition === "chain" ? ", so nothing was allowed" : "";
  const cause = verdict.abortCause;
  switch (cause) {
    case "hook_error": {
      const culprit = abortedBy === null ? undefined : links[abortedBy];
      return `Aborted because ${culprit === undefined ? "a subscriber" : nameOf(culprit)} failed: ${foreign(verdict.reason ?? "")}`;
    }
    case "cancelled":
      return "Aborted: the caller cancelled. That is no verdict.";
    case "store_unavailable":
      return `Aborted: the ledger could not be written${nothing}.`;
    case "recovered":
      return `Aborted by recovery: the process ended before a verdict${nothing}.`;
    case "unconfirmed":
    case null:
      return "Aborted.";
  }
}

/** Who had been called and had not answered when the chain was aborted; empty when nobody was. */
export function inFlightNames({ inFlight, links }: Timeline): string {
  return inFlight.map((index) => foreign(links[index]?.id ?? `#${index}`)).join(", ");
}

export function nameOf({ id, mode }: Pick<TimelineLink, "id" | "mode">): string {
  return `${foreign(id)} (${mode})`;
}

/** `2 allow, 1 ask` */
function countsOf(items: readonly { readonly decision: "allow" | "ask" | "deny" }[]): string {
  return (["allow", "ask", "deny"] as const)
    .map((decision) => ({ decision, count: items.filter((item) => item.decision === decision).length }))
    .filter(({ count }) => count > 0)
    .map(({ decision, count }) => `${count} ${decision}`)
    .join(", ");
}

export type Tone = "good" | "bad" | "doubtful" | "quiet";
export type Words = { readonly text: string; readonly tone: Tone };

/** What a subscriber said, or why it said nothing; `plan` is policy's. */
export function saidWords(link: TimelineLink, timeline: Timeline): Words {
  const words = wordsOf(link, timeline);
  return link.shadow && link.called !== null ? { text: `${words.text} (shadow, not counted)`, tone: "quiet" } : words;
}

function wordsOf(link: TimelineLink, timeline: Timeline): Words {
  const { said, change } = link;
  const failure: Tone = counts(link, timeline) ? "bad" : "doubtful";
  switch (said.kind) {
    case "ack":
      return { text: "ack", tone: "quiet" };
    case "allow":
      return { text: "allow", tone: "good" };
    case "transformed":
      return { text: changeWords(said.kind, change), tone: "quiet" };
    case "rewritten":
      return { text: rewriteWords(said, link, timeline), tone: "quiet" };
    case "claimed":
      return { text: change === null ? "claimed" : `claimed: result v${change.to}`, tone: "good" };
    case "declined":
      return { text: "declined", tone: "quiet" };
    case "policy":
      return { text: countsOf(timeline.plan) || "no items", tone: "good" };
    case "deny":
      return { text: said.reason === null ? "DENY" : `DENY: ${foreign(said.reason)}`, tone: "bad" };
    case "cancelled":
      return { text: said.reason === null ? "CANCELLED" : `CANCELLED: ${foreign(said.reason)}`, tone: "bad" };
    case "failed":
      return { text: `failed: ${said.error.category}: ${foreign(said.error.message)}`, tone: failure };
    case "invalid":
      return { text: `invalid: ${said.error.category}: ${foreign(said.error.message)}`, tone: failure };
    case "timeout":
      return { text: timeoutWords(said), tone: failure };
    case "lost":
      return { text: "lost: the process ended before an answer was recorded", tone: "doubtful" };
    case "in-flight":
      return { text: inFlightWords(said.until, timeline), tone: "doubtful" };
    case "skipped":
      return { text: `skipped: ${foreign(said.why)}`, tone: "quiet" };
    case "not-called":
      return { text: `not called${notCalledWords(said.because, timeline)}`, tone: "quiet" };
  }
}

function changeWords(kind: string, change: TimelineLink["change"]): string {
  if (change === null) return kind;
  return change.from === change.to ? "changed nothing" : `rewrote v${change.from} as v${change.to}`;
}

/** Does anything come of a failure? */
function counts({ mode }: TimelineLink, { blocksOnFailure }: Timeline): boolean {
  return mode === "handler" ? blocksOnFailure : mode !== "observe";
}

function rewriteWords(said: Extract<Said, { kind: "rewritten" }>, link: TimelineLink, timeline: Timeline): string {
  if (said.defines.length === 0) return changeWords(said.kind, link.change);
  return `defined ${definedWords(said.defines, link, timeline)}`;
}

function timeoutWords({ budgetMs, own }: Extract<Said, { kind: "timeout" }>): string {
  return own
    ? `TIMEOUT: no answer within ${showDuration(budgetMs)}`
    : `TIMEOUT: no answer within ${showDuration(budgetMs)}, all that was left of the chain budget`;
}

function inFlightWords(until: AbortCause | null, { verdict }: Timeline): string {
  if (until !== null) return `in flight when the dispatch was aborted (${until})`;
  return verdict.status === "open" ? "called, nothing more is recorded" : "called, its answer is not recorded yet";
}

function notCalledWords(because: NotCalled, { links }: Timeline): string {
  switch (because.kind) {
    case "pending":
      return " yet";
    case "claimed":
      return `: claimed by ${foreign(because.by)}`;
    case "cancelled":
      return `: cancelled by ${foreign(because.by)}`;
    case "blocked":
    case "denied": {
      const denier = links.find(({ id }) => id === because.by);
      const by = foreign(because.by);
      if (denier === undefined || !isFailure(denier.said)) return `: denied by ${by}`;
      return `: the ${denier.said.kind === "timeout" ? "timeout" : "failure"} of ${by} ${because.kind} first`;
    }
    case "aborted":
      return `: ${abortWords(because.cause, because.by)}`;
  }
}

function abortWords(cause: AbortCause, by: string | null): string {
  switch (cause) {
    case "hook_error":
      return `aborted by ${by === null ? "a failure" : `the failure of ${foreign(by)}`}`;
    case "cancelled":
      return "the caller cancelled";
    case "store_unavailable":
      return "the ledger could not be written";
    case "unconfirmed":
    case "recovered":
      return "the process ended first";
  }
}
