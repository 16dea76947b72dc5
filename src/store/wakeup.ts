/** Lets subscriptions sleep until there may be news. */
export class Wakeup {
  readonly #sleepers = new Set<() => void>();
  #calls = 0;

  /** Take it before looking for news: what is announced after that ends the sleep at once. */
  get mark(): number {
    return this.#calls;
  }

  wake(): void {
    this.#calls++;
    for (const sleeper of this.#sleepers) sleeper();
  }

  /** Resolves at the first `wake` after `mark` was taken, when `signal` aborts, or after `atMostMs`. */
  sleep(mark: number, signal: AbortSignal, atMostMs?: number): Promise<void> {
    if (signal.aborted || mark !== this.#calls) return Promise.resolve();
    return new Promise((resolve) => {
      const sleepers = this.#sleepers;
      const timer = atMostMs === undefined ? undefined : setTimeout(done, atMostMs);
      function done(): void {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        sleepers.delete(done);
        resolve();
      }
      signal.addEventListener("abort", done, { once: true });
      sleepers.add(done);
    });
  }
}
