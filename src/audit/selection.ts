/** Which records an export is asked for. */
import type { Mode } from "../core/events.js";
import type { AuditFact } from "./record.js";

/** The union of what is true. */
export type AuditSelection = {
  /** Failures, invalid answers and timeouts of observers, late ones too, and of handlers, who fail as observers do. */
  readonly observeErrors: boolean;
  /** Decisions to deny, and plan items that policy denied. */
  readonly denials: boolean;
  /** Timeouts of any mode, also those that the peer reported. */
  readonly timeouts: boolean;
  readonly aborts: boolean;
  /** Every outcome, timeout, abort and decision. */
  readonly all: boolean;
};

/** Wall clock, ms since 1970: from `since` (inclusive) to `until` (exclusive). */
export type AuditSpan = { readonly since?: number; readonly until?: number };

/** What cannot be read, or placed in time, is never left out: nobody could say that it was not asked for. */
export function selects(selection: AuditSelection, span: AuditSpan, fact: AuditFact): boolean {
  return within(span, fact.at) && (selection.all || fact.type === "undecodable" || isAskedFor(selection, fact));
}

function isAskedFor({ observeErrors, denials, timeouts, aborts }: AuditSelection, fact: AuditFact): boolean {
  const { type, category, decision } = fact;
  const settles = type === "outcome" || type === "timeout";
  return (
    (observeErrors && settles && (mayBe("observe", fact) || mayBe("handler", fact)) && category !== null) ||
    (denials && decision === "deny" && (type === "decided" || mayBe("policy", fact))) ||
    (timeouts && settles && category === "TIMEOUT") ||
    (aborts && type === "aborted")
  );
}

/** Without a mode the chain of the dispatch cannot be read. */
function mayBe(mode: Mode, fact: AuditFact): boolean {
  return fact.mode === null || fact.mode === mode;
}

function within({ since, until }: AuditSpan, at: string | null): boolean {
  const time = at === null ? Number.NaN : Date.parse(at);
  if (Number.isNaN(time)) return true;
  return (since === undefined || time >= since) && (until === undefined || time < until);
}
