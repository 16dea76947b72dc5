// Tells the demo, and holds it to what it tells.
import { isDeepStrictEqual } from "node:util";
import { createStyle, wantsColor } from "#src/cli/style.js";

const { stdout } = process;
const style = createStyle(wantsColor(stdout.isTTY === true, process.env));
const KEY = /sk-[A-Za-z0-9]{20,}/g;

/** A claim of the demo that did not come true. */
export class Untrue extends Error {}

/** Throws Untrue, which says what was claimed; a key in a value is not shown. */
export function check(claim, actual, expected) {
  if (isDeepStrictEqual(actual, expected)) return;
  const shown = (value) => (JSON.stringify(value) ?? "nothing").replace(KEY, "[a key]");
  throw new Untrue(`${claim}\n  expected  ${shown(expected)}\n  found     ${shown(actual)}`);
}

/** Resolves once it is written, so that what another process prints comes after it. */
function print(text) {
  return new Promise((written) => stdout.write(`${text}\n`, () => written()));
}

export const title = (text) => print(style.bold(text));

export const note = (...lines) => print(lines.map((line) => style.dim(line)).join("\n"));

/** @param {readonly string[]} lines what happens, and why it matters, in a line or two */
export const scene = (heading, ...lines) =>
  print(["", "", style.bold(style.cyan(heading)), ...lines.map((line) => `   ${line}`)].join("\n"));

/** @param {readonly (readonly string[])[]} rows */
export function facts(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const aligned = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join("  "));
  return print(["", ...aligned.map((line) => `     ${line.trimEnd()}`)].join("\n"));
}

export const proved = (text) => print(`\n   ${style.green("✓")} ${text}`);

export const typed = (line) => print(`\n${style.dim("$")} ${style.bold(line)}`);

export const failed = (text) => process.stderr.write(`\n${style.red("✗ the demo went wrong:")} ${text}\n`);
