/**
 * Lanes by name: of each, one at a time, in the order in which they came. A lane stalls while the one whose turn it is waits for a time to
 * come; those behind it are told. A lane that nobody is in is forgotten.
 */

type Lane = { tail: Promise<void>; stalled: boolean; readonly told: Set<() => void> };

export type Place = {
  /** Is it this one's turn? */
  readonly first: boolean;
  /** Resolves when it is. */
  readonly reached: Promise<void>;
  /** The lane stalls, or does not any more: for the first one to say. */
  stall(stalled: boolean): void;
  /** Calls `tell` when the lane stalls, or at once where it has; until its turn has come. */
  onStall(tell: () => void): void;
  /** Lets the next one in once it is this one's turn: also where it is left before. Idempotent. */
  leave(): void;
};

export class Lanes {
  readonly #lanes = new Map<string, Lane>();

  enter(name: string): Place {
    const before = this.#lanes.get(name);
    const lane: Lane = before ?? { tail: Promise.resolve(), stalled: false, told: new Set() };
    if (before === undefined) this.#lanes.set(name, lane);
    let first = before === undefined;
    let tell: (() => void) | null = null;
    const reached = lane.tail.then(() => {
      first = true;
      if (tell !== null) lane.told.delete(tell);
    });
    let letGo = (): void => {};
    const left = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const tail = reached
      .then(() => left)
      .then(() => {
        lane.stalled = false;
        if (lane.tail === tail) this.#lanes.delete(name);
      });
    lane.tail = tail;
    return {
      get first() {
        return first;
      },
      reached,
      stall(stalled) {
        if (!first || lane.stalled === stalled) return;
        lane.stalled = stalled;
        if (stalled) for (const waiting of [...lane.told]) waiting();
      },
      onStall(waiting) {
        if (first) return;
        tell = waiting;
        lane.told.add(waiting);
        if (lane.stalled) waiting();
      },
      leave() {
        if (tell !== null) lane.told.delete(tell);
        letGo();
      },
    };
  }
}
