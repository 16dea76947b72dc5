/** Finding what must not be recorded in a text, and leaving a mark in its place. */

import { RE2JS } from "re2js";
import { HookledgerError } from "../errors.js";
import { boundedMessage } from "./text.js";

export const REDACTED = "[redacted]";
/** UTF-16 units. What is shorter occurs in innocent text. */
const SHORTEST_SECRET = 6;

type Interval = { readonly start: number; readonly end: number };

/** Throws HL_CONFIG on a pattern that is none, or that RE2 cannot promise to match in linear time. */
export function compilePattern(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    throw new HookledgerError("HL_CONFIG", `redact: ${JSON.stringify(pattern)} is no RE2 pattern`, { cause: error });
  }
}

/**
 * The spellings under which a secret may turn up: as it is and, of several lines, each by itself, as what a process writes is read;
 * all of them also as our messages escape them, and inside a JSON string.
 */
export function spellings(secrets: readonly string[]): readonly string[] {
  const whole = secrets.flatMap((secret) => [secret, ...secret.split(/[\r\n]+/)]);
  const long = whole.filter((secret) => secret.length >= SHORTEST_SECRET);
  const all = long.flatMap((secret) => [
    secret,
    boundedMessage(secret, Number.POSITIVE_INFINITY),
    JSON.stringify(secret).slice(1, -1),
  ]);
  return [...new Set(all)].sort((a, b) => b.length - a.length);
}

/** `text` with the union of all matches replaced; the same string when there is none. */
export function redactText(text: string, patterns: readonly RE2JS[], secrets: readonly string[]): string {
  const found: Interval[] = [];
  for (const secret of secrets) {
    for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1)) {
      found.push({ start: at, end: at + secret.length });
    }
  }
  for (const pattern of patterns) {
    if (!pattern.test(text)) continue;
    const matcher = pattern.matcher(text);
    while (matcher.find()) {
      const match = { start: matcher.start(), end: matcher.end() };
      if (match.start < match.end && !isMark(text, match)) found.push(match);
    }
  }
  return found.length === 0 ? text : replaceAll(text, found);
}

/** As `redactText`, and the beginning of a secret that a bound has cut off at the end of the text goes too. */
export function redactCutText(text: string, patterns: readonly RE2JS[], secrets: readonly string[]): string {
  const redacted = redactText(text, patterns, secrets);
  for (const secret of secrets) {
    for (let length = secret.length - 1; length >= SHORTEST_SECRET; length--) {
      if (redacted.endsWith(secret.slice(0, length))) return redacted.slice(0, -length) + REDACTED;
    }
  }
  return redacted;
}

/** Does a match lie inside a mark that was left before? A mark is not marked again. */
function isMark(text: string, { start, end }: Interval): boolean {
  // Looking back farther than a mark is long would take the square of the text's length.
  const first = Math.max(0, start - REDACTED.length + 1);
  const from = first + text.slice(first, start + 1).lastIndexOf("[");
  return from >= first && end <= from + REDACTED.length && text.startsWith(REDACTED, from);
}

function replaceAll(text: string, found: Interval[]): string {
  found.sort((a, b) => a.start - b.start || b.end - a.end);
  let redacted = "";
  let copied = 0;
  let end = -1;
  for (const interval of found) {
    if (interval.start >= end) {
      redacted += text.slice(copied, interval.start) + REDACTED;
      end = interval.end;
    } else {
      end = Math.max(end, interval.end);
    }
    copied = end;
  }
  return redacted + text.slice(copied);
}
