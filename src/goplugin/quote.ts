/** What the other side said, in a message for people. */

/** As `quoted`; whoever knows secrets takes them out first, since of one that is cut nobody could tell. */
export type Quote = (text: string, maxChars?: number) => string;

const MAX_QUOTED = 200;
/** C0, DEL, C1, bidi, zero-width and other format controls, line and paragraph separators, byte order mark. */
const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** In quotes, controls as `\u{…}`, at most `maxChars` UTF-16 units between the quotes and the mark of a cut. */
export function quoted(text: string, maxChars = MAX_QUOTED): string {
  // Escaping only lengthens: what lies past the bound in the raw text cannot come back.
  const raw = text.slice(0, maxChars + 1).toWellFormed();
  let shown = "";
  for (const character of raw) {
    const piece = CONTROL.test(character) ? `\\u{${character.codePointAt(0)?.toString(16)}}` : character;
    if (shown.length + piece.length > maxChars) return `"${shown}…"`;
    shown += piece;
  }
  return `"${shown}"`;
}
