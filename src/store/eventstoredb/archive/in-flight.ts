/** Lets so many go at once, and so many bytes of them; the others wait, in order. One that is larger than all goes alone. */
export class InFlight {
  readonly #max: { readonly count: number; readonly bytes: number };
  readonly #waiting: { readonly bytes: number; readonly go: () => void }[] = [];
  #count = 0;
  #bytes = 0;

  constructor(max: { readonly count: number; readonly bytes: number }) {
    this.#max = max;
  }

  async run<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    if (this.#waiting.length > 0 || !this.#fits(bytes)) {
      await new Promise<void>((go) => this.#waiting.push({ bytes, go }));
    } else this.#take(bytes);
    try {
      return await work();
    } finally {
      this.#count--;
      this.#bytes -= bytes;
      this.#admit();
    }
  }

  #fits(bytes: number): boolean {
    return this.#count === 0 || (this.#count < this.#max.count && this.#bytes + bytes <= this.#max.bytes);
  }

  #take(bytes: number): void {
    this.#count++;
    this.#bytes += bytes;
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#take(next.bytes);
      next.go();
    }
  }
}
