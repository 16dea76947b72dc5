import type { Composition } from "./composition.js";
import type { Aborted, Decided, Digest, HookError, PolicyItem, Settlement, Started, Subscriber } from "./events.js";

/** Where one subscriber of the chain stands. */
export type Slot = "idle" | "in-flight" | Settlement;

/** Who ended the chain before its end, and how. */
export type Halt =
  | { readonly verdict: "deny"; readonly by: Subscriber }
  | { readonly verdict: "abort"; readonly by: Subscriber; readonly error: HookError };

/** What every dispatch that has started knows. Holds nothing that depends on the order in which observers settled. */
type Progress = {
  /** Events folded so far: the revision of the next one. */
  readonly revision: number;
  readonly started: Started;
  /** The rules that `started` names. */
  readonly rules: Composition;
  readonly slots: readonly Slot[];
  /** What the next subscriber sees. */
  readonly payload: Digest;
  /** Who made that payload: the index of a subscriber, or null for the input. */
  readonly author: number | null;
  /** Policy's verdict on each plan item; null until policy has spoken. */
  readonly items: readonly PolicyItem[] | null;
  readonly halt: Halt | null;
};

export type Open = Progress & { readonly kind: "open" };
export type Concluded =
  | (Progress & { readonly kind: "decided"; readonly decided: Decided })
  | (Progress & { readonly kind: "aborted"; readonly aborted: Aborted });
export type Begun = Open | Concluded;
export type State = { readonly kind: "new"; readonly revision: 0 } | Begun;

/** An event that is not legal where it stands. `revision` is its index in the log. */
export type Violation = {
  readonly kind: "violation";
  readonly revision: number;
  readonly expected: string;
  readonly found: string;
};

/** What to do next. Effects are data: nothing here calls anybody. */
export type Step =
  | { readonly kind: "invoke"; readonly indexes: readonly number[]; readonly payload: Digest }
  | { readonly kind: "wait"; readonly indexes: readonly number[] }
  | { readonly kind: "conclude"; readonly event: Decided | Aborted }
  | { readonly kind: "settled" };

export const NEW: State = { kind: "new", revision: 0 };

/** Who was called and has not settled, ascending. */
export function inFlight({ slots }: Progress): readonly number[] {
  const indexes: number[] = [];
  for (let index = 0; index < slots.length; index++) if (slots[index] === "in-flight") indexes.push(index);
  return indexes;
}

/** The error in a settlement, or null for a proper answer. */
export function failureOf(settlement: Settlement): HookError | null {
  if (settlement.type === "timeout")
    return { category: "TIMEOUT", message: `no answer within ${settlement.budgetMs} ms` };
  return settlement.class === "failed" || settlement.class === "invalid" ? settlement.error : null;
}

/** Aborted from outside: whoever was in flight is named in the record, and nobody waits for them any more. */
export function isAbandoned(state: Begun): boolean {
  if (state.kind !== "aborted") return false;
  switch (state.aborted.cause) {
    case "cancelled":
    case "store_unavailable":
    case "recovered":
      return true;
    case "hook_error":
    case "unconfirmed":
      return false;
  }
}
