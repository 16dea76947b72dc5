/** A result for people: the verdict first, then why, then who failed. */
import type { RunEnd } from "../replay/run-end.js";
import type { ResultDocument } from "./document.js";
import type { Style } from "./style.js";
import { type Cell, columns } from "./table.js";
import { foreign } from "./text.js";
import { showDuration } from "./time.js";

type VerdictFacts = {
  readonly status: ResultDocument["status"] | "unreadable";
  readonly decision: "allow" | "deny" | null;
  readonly allowed: boolean;
  readonly abortCause: string | null;
  /** Of a run of message hooks that was decided. */
  readonly end?: RunEnd | null;
};

/** A few words, and the colour of what they mean. */
export function verdictWord(facts: VerdictFacts): { readonly text: string; readonly tone: "green" | "yellow" | "red" } {
  switch (facts.status) {
    case "open":
      return { text: "open", tone: "yellow" };
    case "unreadable":
      return { text: "unreadable", tone: "red" };
    case "aborted":
      return { text: facts.abortCause === null ? "aborted" : `aborted: ${foreign(facts.abortCause)}`, tone: "red" };
    case "decided":
      if (facts.end != null) return { text: facts.end, tone: facts.decision === "deny" ? "red" : "green" };
      if (facts.decision === "deny") return { text: "denied", tone: "red" };
      return facts.allowed ? { text: "allowed", tone: "green" } : { text: "allowed in part", tone: "yellow" };
  }
}

/** The same, painted. */
function paintedVerdict(facts: VerdictFacts, style: Style): string {
  const { text, tone } = verdictWord(facts);
  return style[tone](text);
}

type Also = {
  /** false where the ledger failed; what is printed must not say otherwise. */
  readonly recorded?: boolean;
  readonly end?: RunEnd | null;
};

export function verdictLines(
  result: ResultDocument,
  style: Style,
  { recorded = true, end = null }: Also = {},
): readonly string[] {
  const { decidedBy, reason, planDecisions, hookErrors, session, turn } = result;
  const rows: (readonly [label: string, text: string])[] = [];
  if (decidedBy !== null) rows.push(["decided by", foreign(decidedBy)]);
  if (reason !== null) rows.push(["reason", foreign(reason)]);
  for (const [place, line] of planLines(result, style).entries()) rows.push([place === 0 ? "plan" : "", line]);
  for (const [place, error] of hookErrors.entries()) {
    const who = `${foreign(error.subscriber)} (${error.mode})`;
    // The one that decided is told as the reason.
    const message = reason === `${error.category}: ${error.message}` ? "" : `  ${foreign(error.message)}`;
    rows.push([place === 0 ? "hook errors" : "", `${who}  ${style.yellow(error.category)}${message}`]);
  }
  if (session !== null) rows.push(["session", foreign(session)]);
  if (turn !== null) rows.push(["turn", foreign(turn)]);
  const took = showDuration(result.durationMs);
  const { events } = result;
  rows.push(recorded ? ["recorded", `${events} ${events === 1 ? "event" : "events"}, ${took}`] : ["took", took]);
  const summary = planDecisions.length === 0 ? "" : `  ${style.dim(planSummary(planDecisions))}`;
  return [
    `${style.bold(paintedVerdict({ ...result, end }, style))}  ${foreign(result.point)}  ${style.dim(foreign(result.dispatchId))}${summary}`,
    ...columns(rows.map(([label, value]) => [{ text: `  ${label}`, paint: style.dim }, value])),
  ];
}

function planLines({ planDecisions }: ResultDocument, style: Style): readonly string[] {
  const paint = { allow: style.green, ask: style.yellow, deny: style.red };
  return columns(
    planDecisions.map(({ itemId, decision, decidedBy, policyDecision, reason }): Cell[] => [
      foreign(itemId),
      { text: decision, paint: paint[decision] },
      foreign(decidedBy),
      decision === policyDecision ? "" : `(policy: ${policyDecision})`,
      reason === null ? "" : foreign(reason),
    ]),
  );
}

function planSummary(items: ResultDocument["planDecisions"]): string {
  const counts = (["allow", "ask", "deny"] as const).map((decision) => ({
    decision,
    count: items.filter((item) => item.decision === decision).length,
  }));
  return counts
    .filter(({ count }) => count > 0)
    .map(({ decision, count }) => `${count} ${decision}`)
    .join(", ");
}
