/** Rows of text in columns that line up. */
import { width } from "./text.js";

/** What stands in a cell, and how it is painted: colours take no column. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

/** A line for each row; columns are as wide as their widest cell, or as `least` says, and two spaces apart. */
export function columns(rows: readonly (readonly Cell[])[], least: readonly number[] = []): readonly string[] {
  const widths: number[] = [...least];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, width(textOf(cell)));
    });
  }
  return rows.map((row) =>
    row
      .map((cell, column) => painted(cell) + " ".repeat(Math.max(0, (widths[column] ?? 0) - width(textOf(cell)))))
      .join("  ")
      .trimEnd(),
  );
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}

function painted(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.paint(cell.text);
}
