/** How long what belongs to a turn is good for. */

export type TurnEnd = "aborted" | "replaced" | "completed";

export class TurnLife {
  readonly #signal: AbortSignal | undefined;
  #end: TurnEnd | null = null;

  /** `signal`: of the turn. */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /** Null as long as it goes on. */
  get over(): TurnEnd | null {
    return this.#end ?? (this.#signal?.aborted ? "aborted" : null);
  }

  /** The first end stands. */
  end(why: TurnEnd): void {
    this.#end ??= this.over ?? why;
  }
}
