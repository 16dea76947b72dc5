import { type Diagnostics, quoted, shown } from "./diagnostics.js";
import { type ConfigValue, EnvReference } from "./types.js";
import type { Block, Item, Value } from "./value.js";

export type ConfigObject = { readonly [key: string]: ConfigValue };

/**
 * What to do with an expression: `refuse` where the value is used, `keep` (as `${…}` text) where it is only carried along.
 */
type Expressions = "refuse" | "keep";

/**
 * A body without a schema. Nested blocks become lists: `retry { n = 1 }` is `retry: [{ n: 1 }]`, a label is a level of its
 * own: `route "a" { }` is `route: { a: [{ }] }`.
 */
export function freeBody(items: readonly Item[], expressions: Expressions, report: Diagnostics): ConfigObject {
  return new FreeBody(expressions, report).body(items);
}

class FreeBody {
  readonly #expressions: Expressions;
  readonly #report: Diagnostics;

  constructor(expressions: Expressions, report: Diagnostics) {
    this.#expressions = expressions;
    this.#report = report;
  }

  body(items: readonly Item[]): ConfigObject {
    const members = new Map<string, ConfigValue>();
    const blocks = new Map<string, Block[]>();
    for (const item of items) {
      if (item.kind === "block") {
        add(blocks, item.type, item);
        continue;
      }
      if (item.computed && this.#expressions === "refuse") this.#refuse(item.place, item.name);
      members.set(item.name, this.#value(item.value));
    }
    for (const [type, [first, ...others]] of blocks) {
      if (first === undefined) continue;
      if (members.has(type)) this.#report.error(first.place, `${quoted(type)} is an attribute and a block`);
      const odd = others.find((block) => block.labels.length !== first.labels.length);
      if (odd === undefined) members.set(type, this.#blocks([first, ...others], first.labels.length, 0));
      else this.#report.error(odd.place, `all ${quoted(type)} blocks here need ${labelCount(first.labels.length)}`);
    }
    return Object.fromEntries(members);
  }

  /** Blocks of one type with `labels` labels each, the first `depth` of them equal. */
  #blocks(blocks: readonly Block[], labels: number, depth: number): ConfigValue {
    if (depth === labels) return blocks.map((block) => this.body(block.body));
    const groups = new Map<string, Block[]>();
    for (const block of blocks) add(groups, block.labels[depth]?.text ?? "", block);
    return Object.fromEntries([...groups].map(([label, group]) => [label, this.#blocks(group, labels, depth + 1)]));
  }

  #value(value: Value): ConfigValue {
    switch (value.type) {
      case "null":
        return null;
      case "bool":
      case "number":
      case "string":
        return value.value;
      case "env":
        return new EnvReference(value.name, value.place);
      case "expression":
        if (this.#expressions === "refuse") this.#refuse(value.place, value.text);
        return `\${${value.text}}`;
      case "list":
        return value.items.map((item) => this.#value(item));
      case "object":
        return this.body(value.members);
    }
  }

  #refuse(place: Item["place"], text: string): void {
    this.#report.error(place, `the expression ${shown(text)} cannot be used`, {
      hint: 'nothing is evaluated: write a literal, or env("NAME") as the whole value',
    });
  }
}

function add(groups: Map<string, Block[]>, key: string, block: Block): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [block]);
  else group.push(block);
}

function labelCount(count: number): string {
  return count === 1 ? "1 label" : `${count} labels`;
}
