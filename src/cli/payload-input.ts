/** The payload that `dispatch` is given: a file, or standard input, bounded while it is read. */
import { createReadStream } from "node:fs";
import { HookledgerError } from "../errors.js";
import { type Payload, payloadFromBytes, payloadFromJson } from "../payload/payload.js";

/** bytes, of the text as of the binary form */
const MAX_BYTES = 64 * 1024 * 1024;

type PayloadInput = {
  /** A path, or `-` for standard input. */
  readonly path: string;
  /** The encoded message, not JSON. */
  readonly binary: boolean;
  readonly stdin: AsyncIterable<Uint8Array | string>;
};

/** Throws HL_PAYLOAD_UNREADABLE, HL_LIMIT_PAYLOAD, and what the payload's own constructor throws. */
export async function readPayload({ path, binary, stdin }: PayloadInput): Promise<Payload> {
  const bytes = await readBytes(path, stdin);
  try {
    return binary ? payloadFromBytes(bytes) : payloadFromJson(bytes);
  } catch (error) {
    const hint = otherForm(bytes, binary);
    if (hint === null || !(error instanceof HookledgerError) || error.code !== "HL_PAYLOAD") throw error;
    throw new HookledgerError(error.code, error.message, { cause: error, hint });
  }
}

/** Of a file, or with `-` of standard input. Throws HL_PAYLOAD_UNREADABLE and HL_LIMIT_PAYLOAD. */
export function readBytes(path: string, stdin: PayloadInput["stdin"]): Promise<Uint8Array> {
  return bounded(path === "-" ? stdin : createReadStream(path), path);
}

/** What to say if it looks like the form that was not asked for. */
function otherForm(bytes: Uint8Array, binary: boolean): string | null {
  const start = bytes.subarray(0, 4096);
  if (!binary) return start.some(isControl) ? "It looks like a binary file; --binary takes the encoded message." : null;
  return /^\s*\{/.test(Buffer.from(start).toString("latin1")) ? "It looks like JSON; leave --binary out." : null;
}

async function bounded(chunks: AsyncIterable<Uint8Array | string>, path: string): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of chunks) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      size += bytes.byteLength;
      if (size > MAX_BYTES) throw new HookledgerError("HL_LIMIT_PAYLOAD", `the payload is over ${MAX_BYTES} bytes`);
      kept.push(bytes);
    }
  } catch (error) {
    throw error instanceof HookledgerError ? error : unreadable(error, path);
  }
  return Buffer.concat(kept);
}

const REASONS: ReadonlyMap<unknown, string> = new Map([
  ["ENOENT", "there is no such file"],
  ["EISDIR", "it is a folder"],
  ["EACCES", "it may not be read"],
  ["EPERM", "it may not be read"],
]);

function unreadable(error: unknown, path: string): HookledgerError {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const reason = REASONS.get(code) ?? (error instanceof Error ? error.message : String(error));
  const what = path === "-" ? "standard input" : path;
  return new HookledgerError("HL_PAYLOAD_UNREADABLE", `the payload cannot be read from ${what}: ${reason}`, {
    cause: error,
  });
}

function isControl(byte: number): boolean {
  return byte < 9 || (byte > 13 && byte < 32);
}
