/** What export and import have in common: the file (which verify --offline names, too), and what of it could not be copied. */
import { HookledgerError } from "../errors.js";
import type { Refusal } from "../transfer/refusal.js";
import type { Style } from "./style.js";
import { columns } from "./table.js";
import { foreign } from "./text.js";

/** Refusals that people are shown; JSON has all of them. */
const SHOWN = 50;

/** The path of the bundle that the command line names. Throws HL_USAGE where that is nothing. */
export function bundlePath(path = ""): string {
  if (path === "" || path.includes("\0")) throw new HookledgerError("HL_USAGE", "the path of the bundle is empty");
  if (path === "-") {
    throw new HookledgerError("HL_USAGE", "a bundle is a file: it is neither read from stdin nor written to stdout", {
      hint: "Name a file; one that is called - is ./-.",
    });
  }
  return path;
}

export function refusalRows(refused: readonly Refusal[]): readonly Refusal[] {
  return refused.map(({ dispatchId, code, message }) => ({ dispatchId, code, message }));
}

export function refusalLines(refused: readonly Refusal[], style: Style): readonly string[] {
  const rows = refused
    .slice(0, SHOWN)
    .map(({ dispatchId, code, message }) => [
      `  ${foreign(dispatchId)}`,
      { text: "not copied", paint: style.red },
      `${foreign(message)} (${code})`,
    ]);
  const more = refused.length > SHOWN ? [`… and ${refused.length - SHOWN} more; --json prints all`] : [];
  return [...columns(rows), ...more];
}

export function lackingLine(
  { missing, damaged }: { readonly missing: number; readonly damaged: number },
  style: Style,
): readonly string[] {
  if (missing + damaged === 0) return [];
  return [
    `${style.yellow("payloads")}  ${missing} missing and ${damaged} damaged where they were read; none was made up`,
  ];
}
