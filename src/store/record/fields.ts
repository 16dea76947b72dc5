/** Reads a recorded object member by member and refuses what nobody asked for: the record is closed. */
import type { Digest, Ref } from "../../core/events.js";
import { isDigest } from "../../payload/digest.js";

/** A recorded text that this version cannot take for what it says it is. The message names the member. */
export class Undecodable extends Error {
  override readonly name = "Undecodable";
}

type Members = Readonly<Record<string, unknown>>;

export class Fields {
  readonly #members: Members;
  readonly #path: string;
  #read = 0;

  constructor(value: unknown, path: string) {
    if (!isMembers(value)) throw new Undecodable(`${path} is not an object`);
    this.#members = value;
    this.#path = path;
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#members, key);
  }

  text(key: string): string {
    const value = this.#take(key);
    return typeof value === "string" && value.isWellFormed() ? value : this.#refuse(key, "text");
  }

  /** A whole number from 0 to 2^53 − 1. */
  whole(key: string): number {
    const value = this.#take(key);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0
      ? value
      : this.#refuse(key, "a whole number");
  }

  flag(key: string): boolean {
    const value = this.#take(key);
    return typeof value === "boolean" ? value : this.#refuse(key, "true or false");
  }

  digest(key: string): Digest {
    const value = this.#take(key);
    return typeof value === "string" && isDigest(value) ? value : this.#refuse(key, "a digest");
  }

  oneOf<T extends string>(key: string, words: readonly T[]): T {
    const value = this.#take(key);
    return words.find((word) => word === value) ?? this.#refuse(key, words.join(" or "));
  }

  ref(key: string): Ref {
    return this.object(key, (fields) => ({
      digest: fields.digest("digest"),
      size: fields.whole("size"),
      encoding: fields.oneOf("encoding", ["proto", "json"]),
    }));
  }

  nullable<T>(key: string, read: (key: string) => T): T | null {
    if (this.has(key) && this.#members[key] === null) {
      this.#read++;
      return null;
    }
    return read(key);
  }

  /** `{ [key]: value }` if the member is there, else `{}`: for spreading. */
  optional<K extends string, T>(key: K, read: (key: K) => T): { readonly [P in K]?: T } {
    if (!this.has(key)) return {};
    const found: { [P in K]?: T } = {};
    found[key] = read(key);
    return found;
  }

  object<T>(key: string, read: (fields: Fields) => T): T {
    return readObject(this.#take(key), `${this.#path}.${key}`, read);
  }

  list<T>(key: string, read: (item: unknown, path: string) => T): readonly T[] {
    const value = this.#take(key);
    if (!Array.isArray(value)) return this.#refuse(key, "a list");
    return value.map((item: unknown, index) => read(item, `${this.#path}.${key}[${index}]`));
  }

  /** All members, each a text: an object that is a map. */
  texts(): ReadonlyMap<string, string> {
    return new Map(Object.keys(this.#members).map((key) => [key, this.text(key)]));
  }

  /** Call last: throws if there is a member that nobody read. */
  end(): void {
    if (Object.keys(this.#members).length === this.#read) return;
    throw new Undecodable(`${this.#path} has a member that this version does not know`);
  }

  #take(key: string): unknown {
    if (!this.has(key)) throw new Undecodable(`${this.#path}.${key} is missing`);
    this.#read++;
    return this.#members[key];
  }

  #refuse(key: string, wanted: string): never {
    throw new Undecodable(`${this.#path}.${key} is not ${wanted}`);
  }
}

export function readObject<T>(value: unknown, path: string, read: (fields: Fields) => T): T {
  const fields = new Fields(value, path);
  const result = read(fields);
  fields.end();
  return result;
}

export function readText(value: unknown, path: string): string {
  if (typeof value !== "string" || !value.isWellFormed()) throw new Undecodable(`${path} is not text`);
  return value;
}

export function readWhole(value: unknown, path: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new Undecodable(`${path} is not a whole number`);
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
