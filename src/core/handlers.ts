/**
 * What the compositions of message hooks share: handlers, whose failures are recorded and otherwise count for nothing. Where the
 * operator wants a failed handler to block, `started` carries a flag, and the composition says what that means.
 */
import type { Digest, Settlement, Started, Subscriber } from "./events.js";
import { failureOf, type Open, type Step } from "./state.js";

/** A handler that fails ends the run with a deny. */
export const BLOCKS_ON_FAILURE = "blocks_on_failure";

/** No handler bears a name of the kernel. */
const KERNEL_IDS = "kernel:";

/** Why this is no list of handlers, or null. */
export function rejectsOthers(started: Started): string | null {
  if (started.vetoBearing) return "a point that bears vetoes";
  if (started.budgetMs !== null) return "a budget for handlers";
  const stranger = started.subscribers.find(
    ({ mode, id, shadow }) => mode !== "handler" || id.startsWith(KERNEL_IDS) || shadow === true,
  );
  return stranger === undefined ? null : `subscriber ${stranger.index} is no handler`;
}

export function blocksOnFailure({ flags }: Started): boolean {
  return flags.includes(BLOCKS_ON_FAILURE);
}

/** Who stopped the run: the first whose settlement does. */
export function stopper(open: Open, stops: (settlement: Settlement) => boolean): Subscriber | undefined {
  return open.started.subscribers.find(({ index }) => {
    const slot = open.slots[index];
    return typeof slot === "object" && stops(slot);
  });
}

/** Does this end a delivery: a cancellation, or a failure in a run whose failures block? */
function suppresses({ started }: Open, settlement: Settlement): boolean {
  if (settlement.type === "outcome" && settlement.class === "cancelled") return true;
  return blocksOnFailure(started) && failureOf(settlement) !== null;
}

/** One after the other, all seeing `saw`, until one of them ends it. */
export function untilSuppressed(open: Open, saw: Digest): Step {
  const by = stopper(open, (settlement) => suppresses(open, settlement));
  if (by === undefined) return oneByOne(open, saw) ?? letPass(open.payload);
  return { kind: "conclude", event: { type: "decided", decision: "deny", decidedBy: by.id, payload: open.payload } };
}

/** One after the other: who comes next, who is waited for, or null when all are through. */
export function oneByOne(open: Open, saw: Digest): Step | null {
  for (const { index, skip } of open.started.subscribers) {
    if (skip !== undefined) continue;
    switch (open.slots[index]) {
      case "idle":
        return { kind: "invoke", indexes: [index], payload: saw };
      case "in-flight":
        return { kind: "wait", indexes: [index] };
    }
  }
  return null;
}

export function letPass(payload: Digest, decidedBy = "kernel:default"): Step {
  return { kind: "conclude", event: { type: "decided", decision: "allow", decidedBy, payload } };
}

export const nobody = (): boolean => false;

export const theInput = (): null => null;
