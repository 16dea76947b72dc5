import type { Place } from "../errors.js";
import { type Diagnostics, quoted } from "./diagnostics.js";
import { type Reader, wrongType } from "./readers.js";
import { didYouMean } from "./spelling.js";
import type { Attribute, Item, Value } from "./value.js";

/**
 * A closed set of attributes: what is asked for by name is known, `close` reports the rest. An attribute that is absent or
 * of a wrong type reads as undefined; the latter is reported.
 */
export class Fields {
  readonly place: Place;
  readonly #owner: string;
  readonly #items: readonly Item[];
  readonly #attributes: ReadonlyMap<string, Attribute>;
  readonly #report: Diagnostics;
  readonly #known = new Set<string>();
  /** Names that may be blocks, too. */
  readonly #free = new Set<string>();
  /** In front of an attribute's name in a message. */
  readonly #prefix: string;

  /** `owner` names the block or object in messages. */
  constructor(owner: string, place: Place, items: readonly Item[], report: Diagnostics, prefix = "") {
    this.#owner = owner;
    this.place = place;
    this.#items = items;
    this.#attributes = new Map(items.filter((item) => item.kind === "attribute").map((item) => [item.name, item]));
    this.#report = report;
    this.#prefix = prefix;
  }

  optional<T>(name: string, read: Reader<T>): T | undefined {
    this.#known.add(name);
    const attribute = this.#attributes.get(name);
    return attribute === undefined ? undefined : read(attribute.value, this.#prefix + name, this.#report);
  }

  required<T>(name: string, read: Reader<T>): T | undefined {
    if (!this.#attributes.has(name)) {
      this.#report.error(this.place, `${this.#owner} needs the attribute ${quoted(this.#prefix + name)}`);
    }
    return this.optional(name, read);
  }

  /** The members of an object, to be asked and closed in turn. */
  object(name: string): Fields | undefined {
    return this.optional(name, (value, what, report) => {
      if (value.type !== "object") return wrongType(value, what, "an object", report);
      return new Fields(`${this.#owner}: ${what}`, value.place, value.members, report, `${what}.`);
    });
  }

  /** Is an attribute of that name there, whatever it holds? */
  has(name: string): boolean {
    return this.#attributes.has(name);
  }

  isEmpty(): boolean {
    return this.#items.length === 0;
  }

  value(name: string): Value | undefined {
    return this.#attributes.get(name)?.value;
  }

  /** Where an attribute's value stands; without one, where the owner stands. */
  placeOf(name: string): Place {
    return this.value(name)?.place ?? this.place;
  }

  /** Everything of these names, attributes and blocks, which are known from now on. */
  take(names: readonly string[]): readonly Item[] {
    for (const name of names) {
      this.#known.add(name);
      this.#free.add(name);
    }
    return this.#items.filter((item) => names.includes(item.kind === "block" ? item.type : item.name));
  }

  /** Attributes that have no meaning here: each one that is there is an error. */
  forbid(names: readonly string[], why: string): void {
    for (const name of names) {
      this.#known.add(name);
      const attribute = this.#attributes.get(name);
      if (attribute !== undefined) this.#report.error(attribute.place, `${this.#prefix}${name} ${why}`);
    }
  }

  /** Reports what is there and was never asked for. */
  close(): void {
    const known = [...this.#known];
    for (const item of this.#items) {
      const name = item.kind === "block" ? item.type : item.name;
      const isKnown = this.#known.has(name);
      if (isKnown && (item.kind === "attribute" || this.#free.has(name))) continue;
      const what = `${item.kind} ${quoted(name)} in ${this.#owner}`;
      if (isKnown) this.#report.error(item.place, `unexpected ${what}`, { hint: `write ${name} = …` });
      else this.#report.error(item.place, `unknown ${what}`, { hint: didYouMean(name, known) });
    }
  }
}
