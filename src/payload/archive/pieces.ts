/**
 * Content-defined chunking (FastCDC's normalised form): where a piece ends depends on the last 32 bytes before its end alone, so
 * that the pieces behind an edit stay what they were.
 */
import { createHash } from "node:crypto";

const MIN_PIECE = 4 * 1024;
const USUAL_PIECE = 16 * 1024;
export const MAX_PIECE = 64 * 1024;

/** An end is harder to meet before the usual size, and easier behind it. */
const HARD = 32 - 16;
const EASY = 32 - 12;

/** Where the piece that begins at `start` ends, `end` at the latest. */
export function pieceEnd(bytes: Uint8Array, start: number, end: number): number {
  const usual = Math.min(end, start + USUAL_PIECE);
  const last = Math.min(end, start + MAX_PIECE);
  let gear = 0;
  let pos = start + MIN_PIECE;
  for (; pos < usual; pos++) {
    gear = ((gear << 1) + (GEARS[bytes[pos] ?? 0] ?? 0)) | 0;
    if (gear >>> HARD === 0) return pos + 1;
  }
  for (; pos < last; pos++) {
    gear = ((gear << 1) + (GEARS[bytes[pos] ?? 0] ?? 0)) | 0;
    if (gear >>> EASY === 0) return pos + 1;
  }
  return last;
}

/** A number for each byte, the same for ever: other numbers would share nothing with what is archived. */
const GEARS = Int32Array.from({ length: 256 }, (_, byte) =>
  createHash("sha256").update(`hookledger/gear/v1\0${byte}`).digest().readInt32BE(0),
);
