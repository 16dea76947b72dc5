/** The same id with the same payload: the recorded result, and nobody is asked again. */
import { HookledgerError } from "../errors.js";
import { type Payload, payloadFromBytes } from "../payload/payload.js";
import type { Redactor } from "../payload/redaction.js";
import type { EventStore, StreamEvents } from "../store/port.js";
import { foldRecorded } from "../store/record/fold.js";
import { metadataOf } from "../store/record/metadata.js";
import { payloadBytes } from "../store/record/payload-bytes.js";
import { type DispatchResult, resultOf } from "./result.js";
import type { Version } from "./version.js";

/**
 * Null if there is no such dispatch. Throws HL_DISPATCH_OPEN, and HL_DISPATCH_CONFLICT if the recorded payload is another, or if that
 * cannot be told: a record says nothing of what was redacted from it.
 */
export async function recordedResult(
  store: EventStore,
  redactor: Redactor,
  dispatchId: string,
  input: Version,
): Promise<DispatchResult | null> {
  const found = await store.readStream(`hookdispatch-${dispatchId}`);
  if (found === null) return null;
  const { state, failure } = foldRecorded(found.events);
  if (failure !== null || state.kind === "new") {
    throw new HookledgerError("HL_STORE_CORRUPT", `the record of dispatch ${dispatchId} does not replay`, {
      hint: `Run hookledger verify ${dispatchId}.`,
    });
  }
  if (state.started.input.digest !== input.ref.digest) {
    throw new HookledgerError("HL_DISPATCH_CONFLICT", `dispatch ${dispatchId} was made with another payload`);
  }
  if (state.started.flags.includes("redacted") && redactor.mayHide(input.payload)) {
    throw new HookledgerError(
      "HL_DISPATCH_CONFLICT",
      `the record of dispatch ${dispatchId} is redacted: it cannot be told whether this is the same payload`,
    );
  }
  if (state.kind === "open") throw new HookledgerError("HL_DISPATCH_OPEN", `dispatch ${dispatchId} is still open`);
  const payload = state.author === null ? input.payload : await recordedPayload(store, found, state.payload);
  const first = metadataOf(found.events[0]);
  const last = metadataOf(found.events.at(-1));
  return resultOf(state, payload, {
    session: first?.session ?? null,
    turn: first?.turn ?? null,
    durationMs: (last?.offsetNs ?? 0) / 1e6,
    recorded: true,
  });
}

async function recordedPayload(
  store: EventStore,
  found: StreamEvents,
  digest: Version["ref"]["digest"],
): Promise<Payload> {
  const bytes = await payloadBytes(store, found.events, digest);
  if (bytes.kind === "found") return payloadFromBytes(bytes.bytes);
  throw new HookledgerError("HL_STORE_CORRUPT", `the payload ${digest} of a recorded dispatch is ${bytes.kind}`);
}
