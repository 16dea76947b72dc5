/**
 * Version constraints as HCL users write them: `~> 1.2`, `>= 1.0, < 2.0`, `1.4.0`. Not npm's ranges: `~> 1.2` means at least 1.2
 * and below 2. A pre-release satisfies only a constraint that names a pre-release of the same numbers.
 */

type Version = {
  readonly numbers: readonly [number, number, number];
  /** How many numbers were written. */
  readonly precision: number;
  readonly pre: readonly (string | number)[];
};

type Operator = "=" | "!=" | ">" | ">=" | "<" | "<=" | "~>";
type Term = { readonly operator: Operator; readonly version: Version };

type Constraint = { readonly terms: readonly Term[] };

const VERSION =
  /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?$/;
const TERM = /^(=|!=|>=|<=|~>|>|<)?\s*(\S+)$/;

/** Null when the text is no constraint. */
export function parseConstraint(text: string): Constraint | null {
  if (text.length > 256) return null;
  const terms: Term[] = [];
  for (const part of text.split(",")) {
    const match = TERM.exec(part.trim());
    const version = parseVersion(match?.[2] ?? "");
    if (match === null || version === null) return null;
    terms.push({ operator: operatorOf(match[1]), version });
  }
  return { terms };
}

/** Does `version` satisfy the constraint? Null when `version` is none. */
export function satisfies(version: string, constraint: Constraint): boolean | null {
  const parsed = parseVersion(version);
  return parsed === null ? null : constraint.terms.every((term) => holds(term, parsed));
}

function operatorOf(text: string | undefined): Operator {
  switch (text) {
    case "!=":
    case ">":
    case ">=":
    case "<":
    case "<=":
    case "~>":
      return text;
    default:
      return "=";
  }
}

function parseVersion(text: string): Version | null {
  const match = text.length > 256 ? null : VERSION.exec(text);
  if (match === null) return null;
  const [, major, minor, patch, pre] = match;
  return {
    numbers: [Number(major), Number(minor ?? 0), Number(patch ?? 0)],
    precision: patch !== undefined ? 3 : minor !== undefined ? 2 : 1,
    pre: pre === undefined ? [] : pre.split(".").map((part) => (/^\d{1,15}$/.test(part) ? Number(part) : part)),
  };
}

function holds({ operator, version: bound }: Term, version: Version): boolean {
  const order = compare(version, bound);
  switch (operator) {
    case "=":
      return order === 0;
    case "!=":
      return order !== 0;
    case ">":
      return order > 0 && comparable(version, bound);
    case ">=":
      return order >= 0 && comparable(version, bound);
    case "<":
      return order < 0 && comparable(version, bound);
    case "<=":
      return order <= 0 && comparable(version, bound);
    case "~>":
      return order >= 0 && comparable(version, bound) && sameSeries(version, bound);
  }
}

/** All numbers but the last that was written are equal. */
function sameSeries(version: Version, bound: Version): boolean {
  return bound.numbers.every((number, i) => i >= bound.precision - 1 || number === version.numbers[i]);
}

function comparable(version: Version, bound: Version): boolean {
  if (version.pre.length === 0) return true;
  return bound.pre.length > 0 && bound.numbers.every((number, i) => number === version.numbers[i]);
}

function compare(a: Version, b: Version): number {
  for (const [i, number] of a.numbers.entries()) {
    const difference = number - (b.numbers[i] ?? 0);
    if (difference !== 0) return difference;
  }
  if (a.pre.length === 0 || b.pre.length === 0) return b.pre.length - a.pre.length;
  for (let i = 0; i < Math.max(a.pre.length, b.pre.length); i++) {
    const difference = comparePart(a.pre[i], b.pre[i]);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Numbers before words, nothing before something. */
function comparePart(a: string | number | undefined, b: string | number | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return -1;
  if (b === undefined) return 1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a < b ? -1 : 1;
}
