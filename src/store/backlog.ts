/** How much may wait to be written: a store that is slower than what is dispatched says so, and its queue stays bounded. */
import { HookledgerError } from "../errors.js";
import type { AppendRequest } from "./port.js";

/** Bytes of appends, blobs included, that are not answered yet. */
export const MAX_BACKLOG_BYTES = 64 * 1024 * 1024;

/** Counts what a store was asked for and has not answered. One append larger than the bound passes when nothing else waits. */
export class Backlog {
  readonly #bound: number;
  #bytes = 0;

  constructor(bound = MAX_BACKLOG_BYTES) {
    this.#bound = bound;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Claims room for an append before anything of it is written; returns its bytes, to be released with its answer. Throws HL_STORE_BACKLOG. */
  admit(request: AppendRequest): number {
    return this.admitBytes(appendBytes(request));
  }

  /** As `admit`, for what is no append. */
  admitBytes(bytes: number): number {
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bound) {
      throw new HookledgerError(
        "HL_STORE_BACKLOG",
        `${this.#bytes} bytes wait to be written to the ledger: there is no room for ${bytes} more`,
        {
          hint: "The ledger is slower than what is dispatched. Dispatch less at once, or give it a faster disk or server.",
        },
      );
    }
    this.#bytes += bytes;
    return bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** A UTF-16 unit of text counts as one byte: near enough for a bound, and free. */
function appendBytes({ events, blobs = [] }: AppendRequest): number {
  let size = 0;
  for (const { data, metadata, payloads = "" } of events) size += data.length + metadata.length + payloads.length;
  for (const { bytes } of blobs) size += bytes.byteLength;
  return size;
}
