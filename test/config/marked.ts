import type { FileProbe } from "#src/config/file-probe.js";
import { type ConfigOptions, parseConfig } from "#src/config/load.js";
import type { ConfigResult, Diagnostic } from "#src/config/types.js";

/** Stands in a text right before the place that is expected. */
export const MARK = "‸";

/** A text without its mark, and the 1-based place of the mark. */
export function unmark(marked: string): { readonly text: string; readonly line: number; readonly col: number } {
  const [before = "", ...rest] = marked.split(MARK);
  if (rest.length !== 1) throw new Error(`exactly one ${MARK} is needed: ${marked}`);
  const lines = before.split("\n");
  return { text: before + rest.join(""), line: lines.length, col: [...(lines.at(-1) ?? "")].length + 1 };
}

/** All files exist, none is a link. */
export const everything: FileProbe = { realPath: (path: string) => path, isFile: () => true, isExecutable: () => true };

export function parse(
  text: string | Uint8Array,
  options: ConfigOptions = { probe: everything },
): Promise<ConfigResult> {
  return parseConfig([{ name: "agent.hcl", text }], options);
}

export async function errorsOf(text: string | Uint8Array): Promise<readonly Diagnostic[]> {
  const result = await parse(text);
  return result.ok ? [] : result.errors;
}

/** `line:col message` of each diagnostic. */
export function brief(diagnostics: readonly Diagnostic[]): readonly string[] {
  return diagnostics.map(({ place, message }) => `${place.line}:${place.col} ${message}`);
}
