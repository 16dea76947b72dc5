/** Payloads of the kernel's hooks: a HookPayload of that hook point, and no other. */
import type { DispatchEvent } from "../core/events.js";
import { HOOK_POINTS } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import { immutableDifference } from "../payload/difference.js";
import { type Payload, payloadFromBytes } from "../payload/payload.js";
import { readPlan } from "../payload/plan.js";
import { amiss, type EventPlace, type PayloadFinding, type PayloadRules } from "./payload-check-rules.js";

export const chainPayloads: PayloadRules = {
  encoding: "proto",

  bytesFinding(bytes, { point }) {
    const found = payloadOf(bytes)?.point ?? "no payload of any hook point";
    return found === point ? null : amiss(`a payload of ${point}`, found);
  },

  eventFinding: async (event, place) => (await planFinding(event, place)) ?? (await transformFinding(event, place)),
};

/** Policy's verdicts stand twice in the record: as items, and stamped on the plan. A redacted plan may have lost its ids. */
async function planFinding(event: DispatchEvent, { started, bytesOf }: EventPlace): Promise<PayloadFinding | null> {
  if (event.type !== "outcome" || event.class !== "policy" || started.flags.includes("redacted")) return null;
  const stamped = stampedDecisions(payloadOf(await bytesOf(event.payload.digest)));
  const recorded = event.items.map(({ decision }) => decision);
  if (stamped.join() === recorded.join()) return null;
  return { kind: "decision", expected: `items as stamped: ${stamped.join(", ")}`, found: recorded.join(", ") };
}

/**
 * A transform with a say saw what the chain had come to, and may have changed the mutable fields of that alone. Redacted
 * copies are no exception: redaction looks at one value at a time, so what was equal before it is equal behind it.
 */
async function transformFinding(event: DispatchEvent, { before, bytesOf }: EventPlace): Promise<PayloadFinding | null> {
  if (event.type !== "outcome" || event.class !== "transformed" || before.kind === "new") return null;
  if (before.started.subscribers[event.index]?.shadow === true || event.payload.digest === before.payload) return null;
  const saw = payloadOf(await bytesOf(before.payload));
  const left = payloadOf(await bytesOf(event.payload.digest));
  if (saw === null || left === null) return amiss("the payloads before and behind a transform", "not both of them");
  const changed = immutableDifference(saw, left);
  if (changed === undefined) return null;
  const { mutable } = HOOK_POINTS[saw.point];
  return amiss(`changes of ${mutable.length === 0 ? "nothing" : mutable.join(", ")} only`, `another ${changed}`);
}

/** Null for bytes that are no HookPayload of one hook point. */
function payloadOf(bytes: Uint8Array | null): Payload | null {
  if (bytes === null) return null;
  try {
    return payloadFromBytes(bytes);
  } catch (error) {
    if (error instanceof HookledgerError) return null;
    throw error;
  }
}

/** What stands on the items of a plan; nothing where there is no plan, or one that policy could not have read. */
function stampedDecisions(payload: Payload | null): readonly string[] {
  if (payload?.point !== "plan-ready") return [];
  try {
    return readPlan(payload).map(({ incoming }) => incoming);
  } catch (error) {
    if (error instanceof HookledgerError) return [];
    throw error;
  }
}
