/** Appends that are under way, a bounded number of bytes at a time. */

/** Well below what a store lets wait, and above what an SQLite writer takes together before it answers: with less, the two threads take turns. */
const MAX_BYTES = 4 * 1024 * 1024;

export class InFlight {
  #bytes = 0;
  #count = 0;
  #failure: { readonly error: unknown } | null = null;
  #changed: () => void = () => {};

  /** Starts once there is room for its bytes, or nothing else is under way. Throws what an earlier one was rejected with. */
  async add(bytes: number, start: () => Promise<unknown>): Promise<void> {
    while (this.#count > 0 && this.#bytes + bytes > MAX_BYTES) await this.#change();
    this.#check();
    this.#bytes += bytes;
    this.#count++;
    void start().then(
      () => this.#ended(bytes),
      (error: unknown) => {
        this.#failure ??= { error };
        this.#ended(bytes);
      },
    );
  }

  /** Resolves once nothing is under way; throws the first failure. */
  async drained(): Promise<void> {
    while (this.#count > 0) await this.#change();
    this.#check();
  }

  #ended(bytes: number): void {
    this.#bytes -= bytes;
    this.#count--;
    this.#changed();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}
