import { type ErrorCode, HookledgerError, type Place } from "../errors.js";
import { at } from "./diagnostics.js";
import type { Diagnostic } from "./types.js";

const MAX_SHOWN = 20;

/** `file:line:col: message`, and indented below it the offending line and the hint. */
export function diagnosticText({ place, message, line, hint }: Diagnostic): string {
  const lines = [`${at(place)}: ${message}`];
  if (line !== undefined && line.trim() !== "") lines.push(`    | ${line.trim()}`);
  if (hint !== undefined) lines.push(`    ${hint}`);
  return lines.join("\n");
}

type Problem = {
  readonly code: ErrorCode;
  readonly place: Place;
  readonly message: string;
  readonly hint?: string;
};

/** As `validate` prints it. */
export function diagnosticJson({ code, place, message, hint }: Problem) {
  return { code, file: place.file, line: place.line, col: place.col, message, hint: hint ?? null };
}

/** Everything that is wrong with a configuration as one error, with the code, place and hint of the first. */
export function configError(path: string, errors: readonly Diagnostic[]): HookledgerError {
  const [first] = errors;
  const count = `${errors.length} ${errors.length === 1 ? "error" : "errors"} in ${path}`;
  const shown = errors.slice(0, MAX_SHOWN).map(diagnosticText);
  return new HookledgerError(first?.code ?? "HL_CONFIG", [count, ...shown].join("\n"), {
    ...(first !== undefined && { place: first.place }),
    ...(first?.hint !== undefined && { hint: first.hint }),
  });
}
