import type { Outcome, Settlement, Started, Subscriber } from "./events.js";
import type { Open, Step } from "./state.js";

/**
 * How the answers of a hook's subscribers compose into one result. A dispatch names its composition in `started`, so it
 * replays under the rules it was made with.
 */
export interface Composition {
  /** Why this chain could not have started, or null. */
  rejects(started: Started): string | null;
  /** Can this subscriber have answered so? */
  accepts(subscriber: Subscriber, outcome: Outcome): boolean;
  /** Called and recorded without any say in the result; its answer may still arrive after the conclusion. */
  passive(subscriber: Subscriber): boolean;
  /** Does the chain go on without this subscriber's answer? */
  detached(started: Started, subscriber: Subscriber): boolean;
  /** Whose payload the next one sees: the index of a subscriber, or null for the input. */
  author(open: Open): number | null;
  /** What a settlement does to payload and verdict; the slot is filled already. */
  settle(open: Open, subscriber: Subscriber, settlement: Settlement): Open;
  /** What is to be done; never "settled" while open. */
  next(open: Open): Step;
}
