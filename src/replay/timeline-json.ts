import type { Json } from "../payload/canonical-json.js";

/** Looks into JSON of unknown shape by own keys: what is not there, or not of the wanted kind, is null or empty. */
export class JsonReader {
  readonly value: Json | undefined;

  constructor(value: Json | undefined) {
    this.value = value;
  }

  member(key: string): JsonReader {
    const { value } = this;
    if (!isMembers(value) || !Object.hasOwn(value, key)) return new JsonReader(undefined);
    return new JsonReader(value[key]);
  }

  text(key: string): string | null {
    const { value } = this.member(key);
    return typeof value === "string" ? value : null;
  }

  items(key: string): readonly JsonReader[] {
    const { value } = this.member(key);
    return isList(value) ? value.map((item) => new JsonReader(item)) : [];
  }
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function isMembers(value: Json | undefined): value is { readonly [key: string]: Json | undefined } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
