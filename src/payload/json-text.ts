/** JSON text, read strictly: RFC 8259, no key twice, bounded depth. Errors name the JSON path, and the place in the text. */

import { HookledgerError } from "../errors.js";
import { setOwn } from "./own-property.js";

type JsonTree = null | boolean | number | string | readonly JsonTree[] | { readonly [key: string]: JsonTree };

/**
 * Throws HL_PAYLOAD (no JSON, a key twice, a number beyond a double) and HL_LIMIT_DEPTH (more than `maxDepth` arrays and objects
 * inside each other).
 */
export function readJson(text: string, maxDepth: number): JsonTree {
  return new Reader(text, maxDepth).read();
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** One step of a JSON path: `.name` or `["any name"]`. */
export function keyPath(key: string): string {
  return IDENTIFIER.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPES = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);
const HEX = /^[0-9a-fA-F]{4}$/;
const LITERALS = new Map<string, readonly [string, JsonTree]>([
  ["t", ["true", true]],
  ["f", ["false", false]],
  ["n", ["null", null]],
]);

class Reader {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #path: string[] = ["$"];
  #at = 0;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  read(): JsonTree {
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) this.#fail("has something behind its end");
    return value;
  }

  #value(depth: number): JsonTree {
    this.#space();
    const first = this.#text[this.#at];
    if (first === "{") return this.#object(depth + 1);
    if (first === "[") return this.#array(depth + 1);
    if (first === '"') return this.#string();
    const literal = LITERALS.get(first ?? "");
    return literal === undefined ? this.#number() : this.#literal(...literal);
  }

  #object(depth: number): JsonTree {
    this.#enter(depth);
    const object: Record<string, JsonTree> = {};
    if (this.#closes("}")) return object;
    do {
      this.#space();
      if (this.#text[this.#at] !== '"') this.#fail("is no JSON: a key in quotes is expected");
      const key = this.#string();
      this.#path.push(keyPath(key));
      if (Object.hasOwn(object, key)) this.#fail("is there twice");
      this.#space();
      if (this.#text[this.#at] !== ":") this.#fail('is no JSON: ":" is expected');
      this.#at += 1;
      setOwn(object, key, this.#value(depth));
      this.#path.pop();
    } while (this.#goesOn("}"));
    return object;
  }

  #array(depth: number): JsonTree {
    this.#enter(depth);
    const array: JsonTree[] = [];
    if (this.#closes("]")) return array;
    do {
      this.#path.push(`[${array.length}]`);
      array.push(this.#value(depth));
      this.#path.pop();
    } while (this.#goesOn("]"));
    return array;
  }

  #enter(depth: number): void {
    if (depth > this.#maxDepth) {
      throw new HookledgerError("HL_LIMIT_DEPTH", `${this.#where()} nests more than ${this.#maxDepth} levels`);
    }
    this.#at += 1;
  }

  #closes(bracket: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== bracket) return false;
    this.#at += 1;
    return true;
  }

  #goesOn(bracket: string): boolean {
    if (this.#closes(bracket)) return false;
    if (this.#text[this.#at] !== ",") this.#fail(`is no JSON: "," or "${bracket}" is expected`);
    this.#at += 1;
    return true;
  }

  #string(): string {
    const text = this.#text;
    let value = "";
    let from = ++this.#at;
    for (;;) {
      const unit = text.charCodeAt(this.#at);
      if (Number.isNaN(unit)) this.#fail("is no JSON: a string has no end");
      if (unit < 0x20) this.#fail("is no JSON: a control character in a string");
      if (unit === 0x22) return value + text.slice(from, this.#at++);
      if (unit === 0x5c) {
        value += text.slice(from, this.#at) + this.#escape();
        from = this.#at;
      } else {
        this.#at += 1;
      }
    }
  }

  #escape(): string {
    const letter = this.#text[this.#at + 1] ?? "";
    if (letter === "u") {
      const digits = this.#text.slice(this.#at + 2, this.#at + 6);
      if (!HEX.test(digits)) this.#fail("is no JSON: four hex digits are expected");
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const character = ESCAPES.get(letter);
    if (character === undefined) this.#fail("is no JSON: an unknown escape");
    this.#at += 2;
    return character;
  }

  #number(): number {
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text)?.[0];
    if (match === undefined) this.#fail("is no JSON: a value is expected");
    const value = Number(match);
    if (!Number.isFinite(value)) this.#fail("is a number beyond what a double holds");
    this.#at += match.length;
    return value;
  }

  #literal(word: string, value: JsonTree): JsonTree {
    if (!this.#text.startsWith(word, this.#at)) this.#fail("is no JSON: a value is expected");
    this.#at += word.length;
    return value;
  }

  #space(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 0x20 && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.#at += 1;
    }
  }

  #where(): string {
    return this.#path.join("");
  }

  #fail(problem: string): never {
    const before = this.#text.slice(0, this.#at).split("\n");
    const place = `line ${before.length}, column ${[...(before.at(-1) ?? "")].length + 1}`;
    throw new HookledgerError("HL_PAYLOAD", `${this.#where()} ${problem} (${place})`);
  }
}
