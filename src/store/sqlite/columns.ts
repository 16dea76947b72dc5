/** Columns as SQLite returns them: in a ledger that was tampered with, of any type. */
export type Row = readonly unknown[];

/** The empty text, which is never written, for what is no text. */
export function toText(column: unknown): string {
  return typeof column === "string" ? column : "";
}

/** -1, which no stream has, for what is no number. */
export function toInteger(column: unknown): number {
  return typeof column === "number" ? column : -1;
}
