/** Closes what a crash left open. Never allows: see `recoveryStep`. */
import { setImmediate } from "node:timers/promises";
import type { AbortCause, DispatchEvent, Started } from "../core/events.js";
import { evolve } from "../core/machine.js";
import { recoveryStep } from "../core/recovery.js";
import type { State } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import { type EventStore, registersWriters, type StreamEvents } from "../store/port.js";
import { foldRecorded } from "../store/record/fold.js";
import { appendLate } from "../store/record/late-append.js";
import { metadataOf } from "../store/record/metadata.js";
import { ENGINE_VERSION } from "../version.js";

export type RecoveryOptions = {
  readonly dryRun: boolean;
  /** Wall clock, ms since 1970. */
  readonly now: number;
  /** ms: where the store cannot tell whether a writer lives, only dispatches whose last event is older. Undefined: the sum of the timeouts plus 30 s. */
  readonly olderThanMs?: number;
  /** Looks only at so many, the newest first; at all of them where it is undefined. */
  readonly newest?: number;
  /** Ends early, between two dispatches. */
  readonly signal?: AbortSignal;
};

export type Recovered =
  | {
      readonly kind: "closed";
      readonly dispatchId: string;
      readonly status: "decided" | "aborted";
      readonly cause: AbortCause | "lost" | null;
    }
  | { readonly kind: "skipped"; readonly dispatchId: string; readonly reason: string };

const GRACE_MS = 30_000;

/**
 * Yields what was (or, in a dry run, would be) closed, and what was left alone and why. A second recovery finds nothing. Several at once
 * close each dispatch once. Throws as the store does.
 */
export async function* recover(store: EventStore, options: RecoveryOptions): AsyncGenerator<Recovered> {
  const dead = registersWriters(store) ? await store.deadWriters() : [];
  for await (const stream of options.newest === undefined ? all(store) : newest(store, options.newest)) {
    if (options.signal?.aborted) return;
    const recovered = await recoverStream(store, stream, options);
    if (recovered !== null) yield recovered;
  }
  if (registersWriters(store) && !options.dryRun) await store.forgetWriters(dead);
}

async function* all(store: EventStore): AsyncGenerator<StreamEvents> {
  for await (const page of store.readStreams({ order: "oldest" })) yield* page;
  for await (const page of store.readUnlisted()) yield* page;
}

/** One at a time, and a macrotask each: somebody else is at work in this thread. */
async function* newest(store: EventStore, count: number): AsyncGenerator<StreamEvents> {
  let left = count;
  for await (const page of store.list({ order: "newest" })) {
    for (const { stream } of page) {
      if (left-- <= 0) return;
      await setImmediate();
      const found = await store.readStream(stream);
      if (found !== null) yield found;
    }
  }
}

async function recoverStream(
  store: EventStore,
  stream: StreamEvents,
  options: RecoveryOptions,
): Promise<Recovered | null> {
  const dispatchId = stream.stream.slice("hookdispatch-".length);
  const { state, failure } = foldRecorded(stream.events);
  if (failure !== null)
    return { kind: "skipped", dispatchId, reason: `does not replay: ${failure.kind} at revision ${failure.revision}` };
  const closing = closingEvents(state);
  if (state.kind === "new" || closing.events.length === 0) return null;
  const alive = await reasonToWait(store, stream, state, options);
  if (alive !== null) return { kind: "skipped", dispatchId, reason: alive };
  if (!options.dryRun) {
    try {
      await appendLate(store, stream, dispatchId, closing.events, {
        engineVersion: ENGINE_VERSION,
        at: new Date(options.now).toISOString(),
      });
    } catch (error) {
      if (!(error instanceof HookledgerError) || error.code !== "HL_STORE_CONFLICT") throw error;
      return { kind: "skipped", dispatchId, reason: "somebody else appended to it meanwhile" };
    }
    // Another recovery comes to the same events, and a store acknowledges those twice.
    const last = (await store.readStream(stream.stream))?.events.at(-1);
    if (metadataOf(last)?.writer !== store.writer) {
      return { kind: "skipped", dispatchId, reason: "somebody else closed it meanwhile" };
    }
  }
  return { kind: "closed", dispatchId, ...closing.outcome };
}

type Closing = {
  readonly events: readonly DispatchEvent[];
  readonly outcome: { readonly status: "decided" | "aborted"; readonly cause: AbortCause | "lost" | null };
};

function closingEvents(open: State): Closing {
  const events: DispatchEvent[] = [];
  let state = open;
  for (let event = recoveryStep(state); event !== null; event = recoveryStep(state)) {
    const evolved = evolve(state, event);
    if (evolved.kind === "violation")
      throw new HookledgerError("HL_INTERNAL", `recovery came to ${evolved.found} where ${evolved.expected} was due`);
    events.push(event);
    state = evolved;
  }
  const lateOnly = open.kind === "decided" || open.kind === "aborted";
  if (state.kind === "aborted")
    return { events, outcome: { status: "aborted", cause: lateOnly ? "lost" : state.aborted.cause } };
  return { events, outcome: { status: "decided", cause: lateOnly ? "lost" : null } };
}

/** Why this dispatch may still be somebody's, or null: then it is dead. */
async function reasonToWait(
  store: EventStore,
  { events }: StreamEvents,
  state: Exclude<State, { kind: "new" }>,
  options: RecoveryOptions,
): Promise<string | null> {
  const last = metadataOf(events.at(-1));
  if (last === null) return "its metadata cannot be read";
  switch (await store.writerState(last.writer)) {
    case "alive":
      return "its writer is alive";
    case "dead":
      return null;
    case "unknown": {
      const limit = options.olderThanMs ?? longestMs(state.started);
      if (limit === Number.POSITIVE_INFINITY) return "one of its handlers has no timeout: only --older-than can tell";
      const age = options.now - Date.parse(last.at);
      return age > limit ? null : `its last event is younger than ${Math.round(limit / 1000)} s`;
    }
  }
}

/** How long a dispatch may be silent while it lives. */
function longestMs({ subscribers }: Started): number {
  const called = subscribers.filter(({ skip }) => skip === undefined);
  return called.reduce((sum, { timeoutMs }) => sum + (timeoutMs ?? Number.POSITIVE_INFINITY), GRACE_MS);
}
