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

/** Has this one failed in a run whose failures block? */
export function isBlocking(open: Open, settlement: Settlement): boolean {
  return blocksOnFailure(open.started) && failureOf(settlement) !== null;
}

/** One after the other: who comes next, who is waited for, or null when all are through. */
export function oneByOne(open: Open, payload: Digest): Step | null {
  for (const { index, skip } of open.started.subscribers) {
    if (skip !== undefined) continue;
    switch (open.slots[index]) {
      case "idle":
        return { kind: "invoke", indexes: [index], payload };
      case "in-flight":
        return { kind: "wait", indexes: [index] };
    }
  }
  return null;
}

export const nobody = (): boolean => false;

export const theInput = (): null => null;
