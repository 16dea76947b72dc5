/** For which runs a handler is meant. */

import { type Eligibility, type MessageHookName, rulesOf } from "./hooks.js";
import type { HandlerOptions } from "./plugin.js";

/** What a handler may be restricted to; null: nothing. `dropped`: a list was given that is none, and restricts nothing. */
export type Restriction = { readonly values: readonly string[] | null; readonly dropped: boolean };

const UNRESTRICTED: Restriction = { values: null, dropped: false };

/** A list counts only where it is a non-empty array of known values without holes. */
export function restrictionOf(hook: MessageHookName, options: HandlerOptions): Restriction {
  const { eligibility } = rulesOf(hook);
  const listed: unknown = eligibility === null ? undefined : options[eligibility.option];
  if (eligibility === null || listed === undefined) return UNRESTRICTED;
  const values = knownValues(listed, eligibility);
  return values === null ? { values: null, dropped: true } : { values, dropped: false };
}

function knownValues(listed: unknown, { values }: Eligibility): readonly string[] | null {
  if (!Array.isArray(listed) || listed.length === 0) return null;
  const known: string[] = [];
  for (let i = 0; i < listed.length; i++) {
    const value: unknown = Object.hasOwn(listed, i) ? listed[i] : undefined;
    if (typeof value !== "string" || !values.includes(value)) return null;
    known.push(value);
  }
  return known;
}

/** Why a handler is not asked, or null. `context`: what the run is made in. */
export function whyIneligible(hook: MessageHookName, values: readonly string[] | null, context: object): string | null {
  const { eligibility } = rulesOf(hook);
  if (eligibility === null || values === null) return null;
  const { field } = eligibility;
  const value: unknown = Object.hasOwn(context, field) ? Reflect.get(context, field) : undefined;
  if (typeof value !== "string" || !eligibility.values.includes(value)) {
    return eligibility.withoutValue ? null : `only for ${field} ${values.join(", ")}, and there is none`;
  }
  return values.includes(value) ? null : `only for ${field} ${values.join(", ")}`;
}
