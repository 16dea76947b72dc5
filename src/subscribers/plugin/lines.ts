/** A stream of bytes as lines, each bounded: an endless line takes no more room than a long one. */

/** bytes kept of one line */
export const MAX_LINE_BYTES = 64 * 1024;

/** `cut`: bytes that the line had beyond those. */
export type TakeLine = (line: Buffer, cut: number) => void;

const NEWLINE = 10;

export class LineSplitter {
  readonly #take: TakeLine;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #cut = 0;

  constructor(take: TakeLine) {
    this.#take = take;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from);
      if (end === -1) break;
      this.#add(chunk.subarray(from, end));
      this.#emit();
      from = end + 1;
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  }

  /**
   * As `push`, and of the whole lines in the chunk only those in its last `tail` bytes or so: the ones before, and what was held of
   * the first, are never looked at. Returns how many bytes those are.
   */
  skim(chunk: Buffer, tail: number): number {
    const last = chunk.lastIndexOf(NEWLINE);
    const from = last > tail ? chunk.lastIndexOf(NEWLINE, last - tail) + 1 : 0;
    if (from === 0) {
      this.push(chunk);
      return 0;
    }
    const passed = this.#heldBytes + this.#cut + from;
    this.#clear();
    this.push(chunk.subarray(from));
    return passed;
  }

  /** What has no end is a line too. */
  end(): void {
    if (this.#heldBytes > 0) this.#emit();
  }

  #add(piece: Buffer): void {
    const kept = piece.subarray(0, MAX_LINE_BYTES - this.#heldBytes);
    this.#cut += piece.length - kept.length;
    this.#heldBytes += kept.length;
    if (kept.length > 0) this.#held.push(kept);
  }

  #emit(): void {
    const [only = EMPTY, ...more] = this.#held;
    const line = more.length === 0 ? only : Buffer.concat(this.#held);
    const cut = this.#cut;
    this.#clear();
    this.#take(line, cut);
  }

  #clear(): void {
    this.#held = [];
    this.#heldBytes = 0;
    this.#cut = 0;
  }
}

const EMPTY = Buffer.alloc(0);

/**
 * The text of a line, without a carriage return at its end and without the half of a character that a cut left. `redact` sees what is
 * left of a cut line before anything stands behind it: there it knows the beginning of a secret.
 */
export function lineText(line: Buffer, cut: number, redact: (text: string) => string): string {
  const text = line.toString("utf8").replace(/\r$/, "");
  return cut === 0 ? text : `${redact(text.replace(/\ufffd$/, ""))}… (${cut} bytes more)`;
}
