/** Where an export stands: the event in ledger order, and which of its records. Opaque to its readers, and all that is kept. */
import { createHash } from "node:crypto";
import { HookledgerError } from "../errors.js";

/** `part`: from 0, the place of a record among those of its event. */
export type ExportPlace = { readonly position: number; readonly part: number };

const VERSION = "a1";
const CHECK_BYTES = 4;
/** Longer than any that was ever handed out. */
const MAX_CURSOR = 128;
const TEXT = /^a1\.(\d{1,16})\.(\d{1,16})$/;

export function cursorOf({ position, part }: ExportPlace): string {
  const text = Buffer.from(`${VERSION}.${position}.${part}`);
  return Buffer.concat([text, check(text)]).toString("base64url");
}

/** Throws HL_CURSOR on what `cursorOf` did not make. */
export function placeOf(cursor: string): ExportPlace {
  const bytes = Buffer.from(cursor.slice(0, MAX_CURSOR), "base64url");
  const text = bytes.subarray(0, Math.max(0, bytes.length - CHECK_BYTES));
  const [, position, part] = TEXT.exec(text.toString("latin1")) ?? [];
  const place = { position: Number(position), part: Number(part) };
  if (!Number.isSafeInteger(place.position) || !Number.isSafeInteger(place.part) || cursorOf(place) !== cursor) {
    throw new HookledgerError("HL_CURSOR", "this is no cursor of an audit export", {
      hint: "Give the cursor of the last record that you have, exactly as it was exported.",
    });
  }
  return place;
}

function check(text: Uint8Array): Uint8Array {
  return createHash("sha256").update(text).digest().subarray(0, CHECK_BYTES);
}
