/** Text from subscribers on its way into a record: bounded, well-formed, and unable to act on a terminal. */

const MAX_MESSAGE_CHARS = 2048;
/** What is kept of a subscriber's text until it is redacted, and then escaped and cut: a pattern has to see what was said. */
export const MAX_RAW_TEXT = 64 * 1024;
export const MAX_REASON_BYTES = 1024;

/** C0, DEL, C1, bidi, zero-width and other format controls, line and paragraph separators, byte order mark. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** `text` with controls as `\u{…}`, at most `maxChars` UTF-16 units long, cut between characters and escapes. */
export function boundedMessage(text: string, maxChars = MAX_MESSAGE_CHARS): string {
  // Escaping only lengthens: what lies past the bound in the raw text cannot come back.
  const raw = cutUnits(text, maxChars).toWellFormed();
  let bounded = "";
  let from = 0;
  for (const match of raw.matchAll(CONTROLS)) {
    bounded += raw.slice(from, match.index);
    const shown = `\\u{${match[0].codePointAt(0)?.toString(16)}}`;
    if (bounded.length + shown.length > maxChars) return cutUnits(bounded, maxChars);
    bounded += shown;
    from = match.index + match[0].length;
  }
  return cutUnits(bounded + raw.slice(from), maxChars);
}

/** `text`, well-formed, at most `maxChars` (65 536) UTF-16 units long. Controls stay as they are: for what is redacted before it is shown. */
export function rawText(text: string, maxChars = MAX_RAW_TEXT): string {
  return cutUnits(text, maxChars).toWellFormed();
}

/** `text`, well-formed, at most `maxBytes` (1 024) of UTF-8 long, cut between characters. Controls stay as they are. */
export function boundedReason(text: string, maxBytes = MAX_REASON_BYTES): string {
  const raw = cutUnits(text, maxBytes).toWellFormed();
  let bytes = 0;
  let end = 0;
  for (const character of raw) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes) break;
    end += character.length;
  }
  return raw.slice(0, end);
}

/** At most `max` UTF-16 units, never ending inside a surrogate pair. */
function cutUnits(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  const next = text.charCodeAt(max);
  const splits = last >= 0xd800 && last < 0xdc00 && next >= 0xdc00 && next < 0xe000;
  return text.slice(0, splits ? max - 1 : max);
}
