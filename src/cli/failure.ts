/** How a failure is told: `hookledger: <message> (HL_…)` on stderr, and with --json an object on stdout. */
import type { HookledgerError } from "../errors.js";
import { ConfigRejected } from "./configuration.js";
import type { Output } from "./output.js";
import { foreign, foreignBlock } from "./text.js";

export async function reportFailure(out: Output, error: HookledgerError): Promise<void> {
  if (error instanceof ConfigRejected) reportDiagnostics(out, error);
  else reportError(out, error);
  if (out.verbose) out.error(foreignBlock(out.redacted(stackOf(error))));
  if (out.json) await out.document({ error: failureJson(error, out) });
}

function reportError(out: Output, { message, code, place, hint }: HookledgerError): void {
  const { noteStyle } = out;
  out.error(`${noteStyle.red("hookledger:")} ${foreign(out.redacted(message))} (${code})`);
  if (place !== undefined) out.error(`  at ${foreign(place.file)}:${place.line}:${place.col}`);
  if (hint !== undefined) out.error(`  ${noteStyle.dim(foreign(out.redacted(hint)))}`);
}

/** One `file:line:col: message` a line; the offending line and the hint are indented below it. */
export function reportDiagnostics(out: Output, { path, problems }: ConfigRejected): void {
  const { noteStyle } = out;
  const count = `${problems.length} ${problems.length === 1 ? "error" : "errors"}`;
  out.error(`${noteStyle.red("hookledger:")} ${count} in ${foreign(path)} (HL_CONFIG)`);
  for (const { place, message, line, hint } of problems) {
    out.error(`${foreign(place.file)}:${place.line}:${place.col}: ${foreign(message)}`);
    if (line !== undefined && line.trim() !== "") out.error(foreignBlock(line.trim(), "    "));
    if (hint !== undefined) out.error(`    ${noteStyle.dim(foreign(hint))}`);
  }
}

function failureJson({ code, message, place, hint }: HookledgerError, out: Output) {
  return {
    code,
    message: out.redacted(message),
    file: place?.file ?? null,
    line: place?.line ?? null,
    col: place?.col ?? null,
    hint: hint === undefined ? null : out.redacted(hint),
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
