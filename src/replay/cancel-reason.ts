/** Why a rewrite was cancelled is a payload, and stands nowhere else in the record. */
import type { Ref } from "../core/events.js";
import { definedBy } from "../core/rewrite.js";
import type { Begun } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import type { EventStore, RecordedEvent } from "../store/port.js";
import { payloadBytes } from "../store/record/payload-bytes.js";
import { jsonOfText } from "./payload-json.js";
import { runEnd } from "./run-end.js";

/** The last that was defined; null where nothing was cancelled, or nobody said why. */
export function cancelReasonRef(state: Begun): Ref | null {
  const by = runEnd(state) === "cancelled" ? definedBy(state, "cancelReason") : null;
  const slot = by === null ? undefined : state.slots[by];
  if (typeof slot !== "object" || slot.type !== "outcome" || !("set" in slot)) return null;
  return slot.set?.cancelReason ?? null;
}

/** Null also where the bytes are gone, or are no text. */
export async function cancelReason(
  store: EventStore,
  events: readonly RecordedEvent[],
  state: Begun,
): Promise<string | null> {
  const ref = cancelReasonRef(state);
  const found = ref === null ? null : await payloadBytes(store, events, ref.digest);
  if (found?.kind !== "found") return null;
  try {
    const json = jsonOfText(found.bytes);
    return typeof json === "string" ? json : null;
  } catch (error) {
    if (error instanceof HookledgerError) return null;
    throw error;
  }
}
