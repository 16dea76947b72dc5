/** What an audit export says of one event. */
import type { Category, Digest, Mode } from "../core/events.js";

type AuditType = "outcome" | "timeout" | "aborted" | "decided" | "undecodable";

/** Every member is there; null where the event has none. In the order of the columns. */
export type AuditRecord = {
  /** Opaque: where an export goes on behind this record. */
  readonly cursor: string;
  readonly dispatchId: string;
  readonly revision: number;
  readonly type: AuditType;
  /** ISO 8601, as the writer's clock had it. */
  readonly at: string | null;
  readonly session: string | null;
  readonly point: string | null;
  readonly subscriber: string | null;
  readonly mode: Mode | null;
  readonly category: Category | null;
  readonly message: string | null;
  readonly decision: "allow" | "ask" | "deny" | null;
  readonly decidedBy: string | null;
  /** What was decided on, or what the subscriber was given. */
  readonly payloadDigest: Digest | null;
};

/** A record before it has its place in an export. */
export type AuditFact = Omit<AuditRecord, "cursor">;

export const AUDIT_COLUMNS = [
  "cursor",
  "dispatchId",
  "revision",
  "type",
  "at",
  "session",
  "point",
  "subscriber",
  "mode",
  "category",
  "message",
  "decision",
  "decidedBy",
  "payloadDigest",
] as const satisfies readonly (keyof AuditRecord)[];

/** Members in the order of the columns. */
export function auditRecord(cursor: string, fact: AuditFact): AuditRecord {
  return {
    cursor,
    dispatchId: fact.dispatchId,
    revision: fact.revision,
    type: fact.type,
    at: fact.at,
    session: fact.session,
    point: fact.point,
    subscriber: fact.subscriber,
    mode: fact.mode,
    category: fact.category,
    message: fact.message,
    decision: fact.decision,
    decidedBy: fact.decidedBy,
    payloadDigest: fact.payloadDigest,
  };
}
