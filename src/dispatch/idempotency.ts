/** The same id with the same payload: the recorded result, and nobody is asked again. */
import type { Started } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import { type Payload, payloadFromBytes } from "../payload/payload.js";
import { REDACTED } from "../payload/redacted-text.js";
import type { Redactor } from "../payload/redaction.js";
import { Verifier } from "../replay/verify.js";
import type { EventStore, StreamEvents } from "../store/port.js";
import { foldRecorded } from "../store/record/fold.js";
import { metadataOf } from "../store/record/metadata.js";
import { payloadBytes } from "../store/record/payload-bytes.js";
import { type DispatchResult, resultOf } from "./result.js";
import type { Version } from "./version.js";

/**
 * Null if there is no such dispatch. Throws HL_DISPATCH_OPEN, and HL_DISPATCH_CONFLICT if the recorded payload is another, or if that
 * cannot be told, or if what the dispatch came to was recorded redacted: a record says nothing of what was taken out of it.
 * HL_STORE_CORRUPT: the record does not verify, and what somebody wrote into it allows nothing.
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
    throw unverified(dispatchId, "does not replay");
  }
  requireSameInput(state.started, redactor, input);
  if (state.kind === "open") throw stillOpen(dispatchId);
  const { diverged } = await new Verifier(store).verify(found);
  if (diverged !== null) {
    throw unverified(dispatchId, `does not verify: ${diverged.kind} at revision ${diverged.revision}`);
  }
  const made = state.kind === "decided" && state.author !== null;
  const payload = made ? await recordedPayload(store, found, state.payload, state.started) : input.payload;
  const first = metadataOf(found.events[0]);
  const last = metadataOf(found.events.at(-1));
  return resultOf(state, payload, {
    session: first?.session ?? null,
    turn: first?.turn ?? null,
    durationMs: (last?.offsetNs ?? 0) / 1e6,
    storeError: null,
  });
}

function unverified(dispatchId: string, what: string): HookledgerError {
  return new HookledgerError("HL_STORE_CORRUPT", `the record of dispatch ${dispatchId} ${what}`, {
    hint: `Run hookledger verify ${dispatchId}.`,
  });
}

export function stillOpen(dispatchId: string): HookledgerError {
  return new HookledgerError("HL_DISPATCH_OPEN", `dispatch ${dispatchId} is still open`, {
    hint: "Wait for the process that runs it; if that died, hookledger recover closes it.",
  });
}

const claims = new WeakMap<EventStore, Set<string>>();

/**
 * Claims a dispatch id in this process until the returned function is called; null if it is claimed. Equal starts of one writer
 * are one start to a store, so it could not tell two of them apart.
 */
export function claimId(store: EventStore, dispatchId: string): (() => void) | null {
  const ids = claims.get(store) ?? new Set<string>();
  claims.set(store, ids);
  if (ids.has(dispatchId)) return null;
  ids.add(dispatchId);
  return () => ids.delete(dispatchId);
}

/** Did this store's writer begin the dispatch? An equal start of another writer is acknowledged as a repetition. */
export function isOwn(store: EventStore, { events }: StreamEvents): boolean {
  return metadataOf(events[0])?.writer === store.writer;
}

/** Digests speak of what was recorded, which may be a redacted copy; this asks for the true payloads. */
function requireSameInput({ dispatchId, flags, input: recorded }: Started, redactor: Redactor, input: Version): void {
  const redacted = flags.includes("redacted");
  const same = recorded.digest === (redacted ? input.ref : input.payload.ref).digest;
  if (!same) throw new HookledgerError("HL_DISPATCH_CONFLICT", `dispatch ${dispatchId} was made with another payload`);
  if (redacted && redactor.mayHide(input.payload)) {
    throw new HookledgerError(
      "HL_DISPATCH_CONFLICT",
      `the record of dispatch ${dispatchId} is redacted: it cannot be told whether this is the same payload`,
    );
  }
}

async function recordedPayload(
  store: EventStore,
  found: StreamEvents,
  digest: Version["ref"]["digest"],
  { dispatchId, flags }: Started,
): Promise<Payload> {
  const bytes = await payloadBytes(store, found.events, digest);
  if (bytes.kind !== "found") {
    throw new HookledgerError("HL_STORE_CORRUPT", `the payload ${digest} of a recorded dispatch is ${bytes.kind}`);
  }
  if (flags.includes("redacted") && Buffer.from(bytes.bytes).includes(REDACTED)) {
    throw new HookledgerError(
      "HL_DISPATCH_CONFLICT",
      `the payload that dispatch ${dispatchId} came to is redacted in its record and cannot be given again`,
    );
  }
  return payloadFromBytes(bytes.bytes);
}
