/** One thing after the other, in the order in which they were put. */
export class Lane {
  #tail: Promise<void> = Promise.resolve();

  /** `work` begins when all before it has settled; what it throws is nobody's here. */
  put(work: () => Promise<void>): void {
    this.#tail = this.#tail.then(work).catch(() => {});
  }

  /** Resolves when nothing is left, what is put meanwhile included. */
  async idle(): Promise<void> {
    let last: Promise<void> | null = null;
    while (last !== this.#tail) {
      last = this.#tail;
      await last;
    }
  }
}
