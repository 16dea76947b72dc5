/**
 * The kernel's composition: one pass in declaration order. Observers change nothing; a transform replaces the payload or
 * aborts the chain; a veto, and policy before it, lets pass or ends the chain with a deny. What fails closes.
 */
import type { Composition } from "./composition.js";
import type { Aborted, Decided, Outcome, PolicyItem, Settlement, Started, Subscriber } from "./events.js";
import { blocksOnFailure } from "./handlers.js";
import { failureOf, type Halt, inFlight, type Open, type Slot } from "./state.js";

/** Verdicts name subscribers by id, so nobody else may bear a name of the kernel. */
const POLICY_ID = "kernel:policy";
const KERNEL_IDS = "kernel:";

export const chain: Composition = {
  rejects(started) {
    // What fails closes anyway.
    if (blocksOnFailure(started)) return "a flag that is for handlers";
    for (const subscriber of started.subscribers) {
      const why = misplaced(started, subscriber);
      if (why !== null) return `subscriber ${subscriber.index} ${why}`;
    }
    return null;
  },

  accepts(subscriber, outcome) {
    const { mode } = subscriber;
    switch (outcome.class) {
      case "ack":
        return mode === "observe";
      case "transformed":
        return mode === "transform";
      case "allow":
      case "deny":
        return mode === "veto";
      case "policy":
        return mode === "policy";
      case "failed":
        return true;
      case "invalid":
        return mode !== "policy";
      case "lost":
        return passive(subscriber);
      case "claimed":
      case "declined":
      case "rewritten":
      case "cancelled":
        return false;
    }
  },

  passive,

  detached: (started, subscriber) => started.observe === "detached" && passive(subscriber),

  author: (open) => open.author,

  settle(open, subscriber, settlement) {
    if (spendsBudget(subscriber, settlement))
      return { ...open, halt: earlier(open.halt, outOfBudget(open, subscriber, settlement)) };
    if (passive(subscriber)) return open;
    const error = failureOf(settlement);
    if (error !== null) {
      const by = subscriber;
      return {
        ...open,
        halt: subscriber.mode === "transform" ? { verdict: "abort", by, error } : { verdict: "deny", by },
      };
    }
    return settlement.type === "timeout" ? open : answered(open, subscriber, settlement);
  },

  next(open) {
    const indexes = startable(open);
    if (indexes.length > 0) return { kind: "invoke", indexes, payload: open.payload };
    const running = inFlight(open);
    const joins = open.started.subscribers.some(
      (subscriber) => open.slots[subscriber.index] === "in-flight" && !chain.detached(open.started, subscriber),
    );
    return joins ? { kind: "wait", indexes: running } : { kind: "conclude", event: conclusion(open, running) };
  },
};

/** Observers, and whoever runs in the shadow. */
function passive(subscriber: Subscriber): boolean {
  return subscriber.mode === "observe" || subscriber.shadow === true;
}

function misplaced(started: Started, { index, id, mode, timeoutMs, shadow, skip }: Subscriber): string | null {
  if (timeoutMs === null) return "has no timeout";
  if (mode === "policy" ? id !== POLICY_ID : id.startsWith(KERNEL_IDS)) return `may not be called ${id}`;
  switch (mode) {
    case "observe":
    case "transform":
      return null;
    case "veto":
      return started.vetoBearing ? null : "vetoes at a point that bears no veto";
    case "policy":
      if (shadow === true || skip !== undefined) return "is policy without a say";
      return index === 0 && started.vetoBearing ? null : "is policy, but not the first of a veto-bearing point";
    case "handler":
      return "has a mode that the chain does not know";
  }
}

/** A proper answer of somebody who has a say. */
function answered(open: Open, subscriber: Subscriber, outcome: Outcome): Open {
  switch (outcome.class) {
    case "transformed":
      return { ...open, payload: outcome.payload.digest, author: subscriber.index };
    case "deny":
      return { ...open, halt: { verdict: "deny", by: subscriber } };
    case "policy":
      return everyItemDenied(outcome.items)
        ? { ...open, items: outcome.items, halt: { verdict: "deny", by: subscriber } }
        : { ...open, items: outcome.items, payload: outcome.payload.digest, author: subscriber.index };
    case "allow":
    case "ack":
    case "failed":
    case "invalid":
    case "lost":
    case "claimed":
    case "declined":
    case "rewritten":
    case "cancelled":
      return open;
  }
}

function everyItemDenied(items: readonly PolicyItem[]): boolean {
  return items.length > 0 && items.every((item) => item.decision === "deny");
}

/** A call that was given less than its own timeout ran into the end of the chain budget. */
function spendsBudget(subscriber: Subscriber, settlement: Settlement): boolean {
  return settlement.type === "timeout" && subscriber.timeoutMs !== null && settlement.budgetMs < subscriber.timeoutMs;
}

function outOfBudget(open: Open, by: Subscriber, settlement: Settlement): Halt | null {
  const error = failureOf(settlement);
  if (error === null) return null;
  return open.started.vetoBearing ? { verdict: "deny", by } : { verdict: "abort", by, error };
}

/** Concurrent observers may run out of budget in any order: the first of the chain is named. */
function earlier(a: Halt | null, b: Halt | null): Halt | null {
  if (a === null || b === null) return a ?? b;
  return a.by.index <= b.by.index ? a : b;
}

/** Who may start now: the one at the front of the chain, or what is left of the run of observers that begins there. */
function startable(open: Open): readonly number[] {
  if (open.halt !== null) return [];
  const { started, slots } = open;
  const run: number[] = [];
  let joined = true;
  for (const subscriber of started.subscribers) {
    const slot = slots[subscriber.index];
    if (isBehind(started, subscriber, slot)) continue;
    const alone = !passive(subscriber) || started.observe === "sequential";
    if (alone) return joined && slot === "idle" ? [subscriber.index] : run;
    if (slot === "idle") run.push(subscriber.index);
    joined = false;
  }
  return run;
}

/** Has the chain passed this subscriber? */
function isBehind(started: Started, subscriber: Subscriber, slot: Slot | undefined): boolean {
  return (
    subscriber.skip !== undefined ||
    typeof slot === "object" ||
    (slot === "in-flight" && chain.detached(started, subscriber))
  );
}

function conclusion({ halt, payload }: Open, running: readonly number[]): Decided | Aborted {
  if (halt === null) return { type: "decided", decision: "allow", decidedBy: "kernel:default", payload };
  switch (halt.verdict) {
    case "deny":
      return { type: "decided", decision: "deny", decidedBy: halt.by.id, payload };
    case "abort": {
      const aborted: Aborted = { type: "aborted", cause: "hook_error", index: halt.by.index, error: halt.error };
      return running.length === 0 ? aborted : { ...aborted, inFlight: running };
    }
  }
}
