import { type Diagnostics, quoted, shown } from "./diagnostics.js";
import { nearest } from "./spelling.js";
import type { Value } from "./value.js";

/** Takes a value of one type, or reports why it is none; `what` names it in the message. */
export type Reader<T> = (value: Value, what: string, report: Diagnostics) => T | undefined;

/** Names of providers, policies, profiles and hooks. */
export const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
export const NAME_RULE = "a lower-case letter, then at most 63 of a-z, 0-9, _ and -";

export const text: Reader<string> = (value, what, report) =>
  value.type === "string" ? value.value : wrongType(value, what, "a string", report);

export const flag: Reader<boolean> = (value, what, report) =>
  value.type === "bool" ? value.value : wrongType(value, what, "true or false", report);

export const name: Reader<string> = (value, what, report) => {
  const read = text(value, what, report);
  if (read === undefined || NAME.test(read)) return read;
  report.error(value.place, `${what} ${quoted(read)} is not a valid name`, { hint: `a name is ${NAME_RULE}` });
  return undefined;
};

/** A text of 1 to `max` bytes. */
export function shortText(max: number): Reader<string> {
  return (value, what, report) => {
    const read = text(value, what, report);
    if (read === undefined || (read !== "" && Buffer.byteLength(read) <= max)) return read;
    report.error(value.place, `${what} must be 1 to ${max} bytes long`);
    return undefined;
  };
}

/** A whole number in a closed range. */
export function whole(min: number, max: number): Reader<number> {
  const wanted = `a whole number from ${min} to ${max}`;
  return (value, what, report) => {
    if (value.type !== "number") return wrongType(value, what, wanted, report);
    if (Number.isInteger(value.value) && value.value >= min && value.value <= max) return value.value;
    report.error(value.place, `${what} must be ${wanted}, not ${value.value}`);
    return undefined;
  };
}

export function oneOf<const T extends string>(...choices: readonly T[]): Reader<T> {
  const wanted = choices
    .map((choice) => `"${choice}"`)
    .join(", ")
    .replace(/, ([^,]*)$/, " or $1");
  return (value, what, report) => {
    if (value.type !== "string") return wrongType(value, what, wanted, report);
    const chosen = choices.find((choice) => choice === value.value);
    if (chosen !== undefined) return chosen;
    const near = nearest(value.value, choices);
    const hint = near === undefined ? undefined : `did you mean "${near}"?`;
    report.error(value.place, `${what} must be ${wanted}, not ${quoted(value.value)}`, { hint });
    return undefined;
  };
}

/** Every item that can be read; what cannot is reported and left out. */
export function listOf<T>(item: Reader<T>): Reader<readonly T[]> {
  return (value, what, report) => {
    if (value.type !== "list") return wrongType(value, what, "a list", report);
    const read: T[] = [];
    for (const [i, inner] of value.items.entries()) {
      const one = item(inner, `${what}[${i}]`, report);
      if (one !== undefined) read.push(one);
    }
    return read;
  };
}

export function wrongType(value: Value, what: string, wanted: string, report: Diagnostics): undefined {
  const hint =
    value.type === "expression" || value.type === "env"
      ? 'nothing is evaluated here: write a literal; env("NAME") stands in a provider body only'
      : undefined;
  report.error(value.place, `${what} must be ${wanted}, not ${describe(value)}`, { hint });
  return undefined;
}

function describe(value: Value): string {
  switch (value.type) {
    case "null":
      return "null";
    case "bool":
      return String(value.value);
    case "number":
      return `the number ${value.value}`;
    case "string":
      return `the string ${quoted(value.value)}`;
    case "env":
      return `env(${quoted(value.name)})`;
    case "expression":
      return `the expression ${shown(value.text)}`;
    case "list":
      return "a list";
    case "object":
      return "an object";
  }
}
