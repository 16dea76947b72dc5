/**
 * RFC 8785 (JSON Canonicalization Scheme): keys sorted by UTF-16 code units, numbers and strings as ECMAScript prints
 * them, no white space. The text that is digested is the text that is stored.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/** Throws a TypeError on what has no JSON form (NaN, infinity, a lone surrogate). Undefined members are left out. */
export function canonicalJson(value: Json): string {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no JSON form`);
      return String(value === 0 ? 0 : value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      return isArray(value) ? canonicalArray(value) : canonicalObject(value);
  }
}

function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function canonicalArray(items: readonly Json[]): string {
  let text = "[";
  for (let i = 0; i < items.length; i++) {
    if (i > 0) text += ",";
    text += canonicalJson(items[i] ?? null);
  }
  return `${text}]`;
}

function canonicalObject(members: { readonly [key: string]: Json | undefined }): string {
  let text = "{";
  for (const key of Object.keys(members).sort()) {
    const member = members[key];
    if (member === undefined) continue;
    if (text.length > 1) text += ",";
    text += `${quote(key)}:${canonicalJson(member)}`;
  }
  return `${text}}`;
}

function quote(text: string): string {
  if (!text.isWellFormed()) throw new TypeError("a lone surrogate has no JSON form");
  return JSON.stringify(text);
}
