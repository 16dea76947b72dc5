/** What was lately, by key: bounded in entries and in time, the oldest forgotten first. */

export type RecentBounds = {
  readonly entries: number;
  /** Infinity: for ever. */
  readonly ms: number;
};

type Entry<V> = { readonly value: V; readonly until: number };

export class Recent<V> {
  readonly #bounds: RecentBounds;
  /** Monotonic ms. */
  readonly #now: () => number;
  /** In the order in which they end. */
  readonly #entries = new Map<string, Entry<V>>();

  constructor(bounds: RecentBounds, now: () => number) {
    this.#bounds = bounds;
    this.#now = now;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.until <= this.#now() ? undefined : entry.value;
  }

  /** Lately is from now on, also where the key is known. */
  set(key: string, value: V): void {
    const now = this.#now();
    this.#entries.delete(key);
    this.#entries.set(key, { value, until: now + this.#bounds.ms });
    for (const [oldest, { until }] of this.#entries) {
      if (until > now && this.#entries.size <= this.#bounds.entries) return;
      this.#entries.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
