/** How a failure is told: `hookledger: <message> (HL_…)` on stderr, and with --json an object on stdout. */
import type { HookledgerError } from "../errors.js";
import type { Output } from "./output.js";
import { foreign, foreignBlock } from "./text.js";

export async function reportFailure(out: Output, error: HookledgerError): Promise<void> {
  const { noteStyle } = out;
  const { place, hint } = error;
  out.error(`${noteStyle.red("hookledger:")} ${foreign(error.message)} (${error.code})`);
  if (place !== undefined) out.error(`  at ${foreign(place.file)}:${place.line}:${place.col}`);
  if (hint !== undefined) out.error(`  ${noteStyle.dim(foreign(hint))}`);
  if (out.verbose) out.error(foreignBlock(stackOf(error)));
  if (out.json) await out.document({ error: failureJson(error) });
}

export function failureJson({ code, message, place, hint }: HookledgerError) {
  return {
    code,
    message,
    file: place?.file ?? null,
    line: place?.line ?? null,
    col: place?.col ?? null,
    hint: hint ?? null,
  };
}

/** Of the error, or of what it came from where that says more. */
function stackOf(error: HookledgerError): string {
  const stacks = [error.stack ?? error.message];
  for (let cause = error.cause; cause instanceof Error && stacks.length < 5; cause = cause.cause) {
    stacks.push(`caused by ${cause.stack ?? cause.message}`);
  }
  return stacks.join("\n");
}
