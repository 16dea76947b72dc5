import type { Place } from "../errors.js";
import { boundedMessage } from "../payload/text.js";

const BYTE_ORDER_MARK = "\ufeff";
const MAX_EXCERPT_CHARS = 200;

/**
 * One file's text, with places. A byte-order mark at the start is dropped and takes up no column; lines end with `\n`
 * (or `\r\n`); a column is a Unicode character, 1-based. Offsets are UTF-16 units into `text`.
 */
export class SourceText {
  readonly file: string;
  readonly text: string;
  readonly #lineStarts: readonly number[];
  /** Where the last column was counted to: asking in ascending order costs one pass over the text in all. */
  #counted = { line: 0, offset: 0, col: 1 };

  constructor(file: string, text: string) {
    this.file = file;
    this.text = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    const starts = [0];
    for (let at = this.text.indexOf("\n"); at >= 0; at = this.text.indexOf("\n", at + 1)) starts.push(at + 1);
    this.#lineStarts = starts;
  }

  /** The place of an offset, 0 to `text.length`. */
  place(offset: number): Place {
    const line = this.#lineOf(offset);
    const start = this.#lineStarts[line] ?? 0;
    const known = this.#counted;
    let { offset: at, col } = known.line === line && known.offset <= offset ? known : { offset: start, col: 1 };
    while (at < offset) {
      at += (this.text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
      col++;
    }
    this.#counted = { line, offset: at, col };
    return { file: this.file, line: line + 1, col };
  }

  /** The offset of a 1-based line and a 1-based column counted in grapheme clusters, as the HCL grammar counts them. */
  offsetOfGrapheme(line: number, column: number): number {
    const start = this.#lineStarts[Math.min(line, this.#lineStarts.length) - 1] ?? 0;
    return start + graphemesLength(this.#line(line), column - 1);
  }

  /** A 1-based line for a message: controls escaped, tabs as one space, at most 200 characters. */
  excerpt(line: number): string {
    return boundedMessage(this.#line(line).replaceAll("\t", " "), MAX_EXCERPT_CHARS);
  }

  #line(line: number): string {
    const start = this.#lineStarts[line - 1];
    if (start === undefined) return "";
    const next = this.#lineStarts[line];
    return this.text.slice(start, next === undefined ? undefined : next - 1).replace(/\r$/, "");
  }

  /** Index of the line that holds an offset. */
  #lineOf(offset: number): number {
    let low = 0;
    let high = this.#lineStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
/** UTF-16 units that are segmented at a time: iterating a long text takes quadratic time. */
const SLICE = 256;

/** Length of the first `count` grapheme clusters of a text, in UTF-16 units. */
function graphemesLength(text: string, count: number): number {
  let length = 0;
  let left = count;
  while (left > 0 && length < text.length) {
    const slice = text.slice(length, length + SLICE);
    const segments = Array.from(graphemes.segment(slice), ({ segment }) => segment);
    // The last one may go on behind the slice.
    if (segments.length > 1 && length + SLICE < text.length) segments.pop();
    for (const segment of segments.slice(0, left)) length += segment.length;
    left -= Math.min(left, segments.length);
  }
  return length;
}
