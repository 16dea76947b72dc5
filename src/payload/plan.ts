/** The plan in a plan-ready payload, as policy reads and stamps it. */

import type { ItemDecision, PolicyItem } from "../core/events.js";
import type { PlanItemFacts, PolicyKind, PolicyRisk } from "../core/policy.js";
import { HookledgerError } from "../errors.js";
import { type Payload, payloadOfCanonical, variantOf } from "./payload.js";
import { recordsOf, type WireRecord } from "./records.js";
import { messageType } from "./schema.js";
import { decodeCanonical } from "./view-decode.js";
import { LENGTH, ReverseWriter, VARINT } from "./wire.js";

const PLAN_ITEM = "pluggableharness.plan.v1.PlanItem";
const PLAN_READY = 5;
const PLAN = 1;
const ITEMS = 2;
const DECISION = 6;
const DECIDED_BY = 7;

const KINDS = new Map<unknown, PolicyKind>([
  ["TOOL_KIND_RESOURCE", "resource"],
  ["TOOL_KIND_DATA_SOURCE", "data_source"],
  ["TOOL_KIND_INTERACTIVE", "interactive"],
]);
const RISKS = new Map<unknown, PolicyRisk>([
  ["RISK_CLASS_READ_ONLY", "read_only"],
  ["RISK_CLASS_LOW", "low"],
  ["RISK_CLASS_MODERATE", "moderate"],
  ["RISK_CLASS_HIGH", "high"],
  ["RISK_CLASS_CRITICAL", "critical"],
]);
const INCOMING = new Map<unknown, PlanItemFacts["incoming"]>([
  ["PLAN_DECISION_PENDING", "pending"],
  ["PLAN_DECISION_ALLOW", "allow"],
  ["PLAN_DECISION_ASK", "ask"],
  ["PLAN_DECISION_DENY", "deny"],
]);
const STAMPS = { allow: 2, ask: 3, deny: 4 } as const satisfies Record<ItemDecision, number>;

/** The items in plan order. Throws HL_PAYLOAD when two have one id. */
export function readPlan(payload: Payload): readonly PlanItemFacts[] {
  const seen = new Set<string>();
  const type = messageType(PLAN_ITEM);
  return itemsOf(payload).map((item, index) => {
    const facts = factsOf(new Map(Object.entries(decodeCanonical(type, payload.bytes, item.value, item.end))));
    if (seen.has(facts.itemId)) {
      throw new HookledgerError("HL_PAYLOAD", `planReady.plan.items[${index}].id is the id of an earlier item`);
    }
    seen.add(facts.itemId);
    return facts;
  });
}

function factsOf(item: ReadonlyMap<string, unknown>): PlanItemFacts {
  const risk = RISKS.get(item.get("risk"));
  return {
    itemId: String(item.get("id")),
    provider: String(item.get("provider")),
    toolName: String(item.get("operationName")),
    kind: KINDS.get(item.get("kind")) ?? "unspecified",
    ...(risk === undefined ? {} : { risk }),
    incoming: INCOMING.get(item.get("decision")) ?? "unspecified",
    decidedBy: String(item.get("decidedBy")),
  };
}

/**
 * Writes each item's decision and who made it into the plan; all else stays, byte for byte. Items that are not named are left
 * alone. Throws HL_PAYLOAD when two items of the plan have one id.
 */
export function stampPlan(payload: Payload, items: readonly PolicyItem[]): Payload {
  const { bytes } = payload;
  const stamps = new Map(items.map((item) => [item.itemId, item]));
  const ids = readPlan(payload).map(({ itemId }) => itemId);
  const out = new ReverseWriter(bytes.length + 64 * ids.length);
  let index = ids.length;
  const stamped: Rewrite = (item) => {
    index -= 1;
    const stamp = stamps.get(ids[index] ?? "");
    return stamp === undefined ? undefined : () => writeItem(out, bytes, item, stamp);
  };
  const inPlan: Rewrite = (plan) => within(out, bytes, plan, { [ITEMS]: stamped });
  const inVariant: Rewrite = (variant) => within(out, bytes, variant, { [PLAN]: inPlan });
  copy(out, bytes, recordsOf(bytes), { [PLAN_READY]: inVariant });
  return payloadOfCanonical(out.finish());
}

/** What to write in place of a record's value, last byte first; undefined leaves the record as it is. */
type Rewrite = (record: WireRecord) => (() => void) | undefined;
type Rewrites = { readonly [number: number]: Rewrite };

function within(out: ReverseWriter, bytes: Uint8Array, record: WireRecord, rewrites: Rewrites): () => void {
  return () => copy(out, bytes, recordsOf(bytes, record.value, record.end), rewrites);
}

function copy(out: ReverseWriter, bytes: Uint8Array, records: readonly WireRecord[], rewrites: Rewrites): void {
  for (const record of records.toReversed()) {
    const write = rewrites[record.number]?.(record);
    if (write === undefined) {
      out.raw(bytes, record.start, record.end);
      continue;
    }
    const before = out.length;
    write();
    out.uint(out.length - before);
    out.tag(record.number, LENGTH);
  }
}

function writeItem(out: ReverseWriter, bytes: Uint8Array, item: WireRecord, stamp: PolicyItem): void {
  const records = recordsOf(bytes, item.value, item.end);
  copy(
    out,
    bytes,
    records.filter(({ number }) => number > DECIDED_BY),
    {},
  );
  if (stamp.decidedBy !== "") {
    out.text(stamp.decidedBy);
    out.tag(DECIDED_BY, LENGTH);
  }
  out.uint(STAMPS[stamp.decision]);
  out.tag(DECISION, VARINT);
  copy(
    out,
    bytes,
    records.filter(({ number }) => number < DECISION),
    {},
  );
}

function itemsOf({ bytes, point }: Payload): readonly WireRecord[] {
  if (point !== "plan-ready") throw new HookledgerError("HL_INTERNAL", `a ${point} payload has no plan`);
  const { record } = variantOf(bytes);
  const plan = recordsOf(bytes, record.value, record.end).find(({ number }) => number === PLAN);
  return plan === undefined ? [] : recordsOf(bytes, plan.value, plan.end).filter(({ number }) => number === ITEMS);
}
