/**
 * Foreign text (from subscribers, payloads, configuration, ledgers) on its way to a terminal or a log: it can neither act
 * on the terminal nor pass for a line of ours.
 */
import type { Digest } from "../core/events.js";
import { boundedMessage } from "../payload/text.js";

/** bytes of UTF-8 that one line of foreign text may take, the mark of a cut included */
const MAX_LINE_BYTES = 1024;
const CUT = "…";

/** One line: controls as `\u{…}`, cut at 1 024 bytes between characters and escapes. */
export function foreign(text: string): string {
  // Escaping never shortens: what lies past the bound in the raw text stays past it.
  const raw = text.slice(0, MAX_LINE_BYTES + 1).toWellFormed();
  const escaped = escapeControls(raw);
  if (Buffer.byteLength(escaped) <= MAX_LINE_BYTES) return escaped;
  let shown = "";
  let bytes = Buffer.byteLength(CUT);
  for (const character of raw) {
    const piece = escapeControls(character);
    bytes += Buffer.byteLength(piece);
    if (bytes > MAX_LINE_BYTES) break;
    shown += piece;
  }
  return shown + CUT;
}

/** Several lines: each one bounded as `foreign` does, behind the indentation and a bar. */
export function foreignBlock(text: string, indent = "  "): string {
  return text
    .split("\n")
    .map((line) => `${indent}│ ${foreign(line)}`)
    .join("\n");
}

/** JSON on one line, with every control of foreign text escaped. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(CONTROLS, unicodeEscapes);
}

/** The same for people: indented by two spaces. */
export function prettyJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(CONTROLS, (control) =>
    control === "\n" ? "\n" : unicodeEscapes(control),
  );
}

/** How many columns a text takes where every character takes one. */
export function width(text: string): number {
  return Array.from(text).length;
}

const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** In JSON text a raw control can only stand inside a string, but for the line breaks of its layout. */
function unicodeEscapes(control: string): string {
  return Array.from({ length: control.length }, (_, place) => hex(control.charCodeAt(place))).join("");
}

function hex(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}

function escapeControls(text: string): string {
  return boundedMessage(text, Number.POSITIVE_INFINITY);
}

/** The beginning of a digest: enough to tell two apart. */
export function shortDigest(digest: Digest): string {
  return `${digest.slice("sha256:".length, "sha256:".length + 12)}…`;
}
