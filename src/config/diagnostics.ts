import type { Place } from "../errors.js";
import { boundedMessage } from "../payload/text.js";
import type { SourceText } from "./source-text.js";
import type { Diagnostic } from "./types.js";

type DiagnosticDetails = { readonly code?: Diagnostic["code"]; readonly hint?: string | undefined };

/** Collects what is wrong with a configuration. */
export class Diagnostics {
  /** In the order in which the files are read; also the order of what is reported. */
  readonly #sources = new Map<string, SourceText>();
  readonly #found: Diagnostic[] = [];

  constructor(sources: readonly SourceText[]) {
    for (const source of sources) this.#sources.set(source.file, source);
  }

  error(place: Place, message: string, details: DiagnosticDetails = {}): void {
    this.#add("error", place, message, details);
  }

  warning(place: Place, message: string, details: DiagnosticDetails = {}): void {
    this.#add("warning", place, message, details);
  }

  /** By file, line and column. */
  list(severity: Diagnostic["severity"]): readonly Diagnostic[] {
    const order = new Map([...this.#sources.keys()].map((file, i) => [file, i]));
    const rank = (file: string) => order.get(file) ?? -1;
    return this.#found
      .filter((diagnostic) => diagnostic.severity === severity)
      .sort(({ place: a }, { place: b }) => rank(a.file) - rank(b.file) || a.line - b.line || a.col - b.col);
  }

  #add(severity: Diagnostic["severity"], place: Place, message: string, details: DiagnosticDetails): void {
    const line = this.#sources.get(place.file)?.excerpt(place.line);
    this.#found.push({
      severity,
      code: details.code ?? "HL_CONFIG",
      message,
      place,
      ...(line !== undefined && { line }),
      ...(details.hint !== undefined && { hint: details.hint }),
    });
  }
}

/** A place in a message. */
export function at({ file, line, col }: Place): string {
  return `${boundedMessage(file)}:${line}:${col}`;
}

const MAX_QUOTED_CHARS = 64;

/** Foreign text in a message: in quotes, controls escaped, at most 64 characters. */
export function quoted(text: string): string {
  return `"${shown(text)}"`;
}

/** The same without quotes, for what is no string. */
export function shown(text: string): string {
  const whole = boundedMessage(text, 2 * MAX_QUOTED_CHARS);
  return whole.length > MAX_QUOTED_CHARS ? `${boundedMessage(text, MAX_QUOTED_CHARS)}…` : whole;
}
