/** Audit records as lines of text. */
import { AUDIT_COLUMNS, type AuditRecord } from "./record.js";

/** `show` makes foreign text safe to print; a field that is no foreign text passes through it unchanged. */
export function csvLine(record: AuditRecord, show: (text: string) => string): string {
  return AUDIT_COLUMNS.map((column) => {
    const value = record[column];
    return csvCell(value === null ? "" : show(String(value)));
  }).join(",");
}

export const CSV_HEADER = AUDIT_COLUMNS.join(",");

/** What a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const SPECIAL = /[",\r\n]/;

/** RFC 4180, and no cell begins as a formula does. */
export function csvCell(text: string): string {
  const cell = FORMULA.test(text) ? `'${text}` : text;
  return SPECIAL.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
