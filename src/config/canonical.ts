import { basename } from "node:path";
import type { Place } from "../errors.js";
import { canonicalJson, type Json } from "../payload/canonical-json.js";
import type { Block, Item, Value } from "./value.js";

/**
 * RFC 8785 text of a whole configuration: every block in textual order, with its place by base name, as written. Texts are
 * in template form, so that a literal (`$${x}`), a reference (`${env("NAME")}`) and an expression never look alike.
 */
export function canonicalText(blocks: readonly Block[]): string {
  return canonicalJson({ blocks: blocks.map((block) => blockJson(block, block.place)) });
}

function blockJson({ type, labels, body }: Block, place?: Place): Json {
  const attributes = new Map<string, Json>();
  const blocks: Json[] = [];
  for (const item of body) {
    if (item.kind === "block") blocks.push(blockJson(item));
    else attributes.set(keyText(item), valueJson(item.value));
  }
  return {
    type,
    labels: labels.map((label) => label.text),
    attributes: Object.fromEntries(attributes),
    blocks,
    at: place && `${basename(place.file)}:${place.line}:${place.col}`,
  };
}

function valueJson(value: Value): Json {
  switch (value.type) {
    case "null":
      return null;
    case "bool":
    case "number":
      return value.value;
    case "string":
      return templateText(value.value);
    case "env":
      return `\${env(${JSON.stringify(value.name)})}`;
    case "expression":
      return `\${${value.text}}`;
    case "list":
      return value.items.map(valueJson);
    case "object":
      return Object.fromEntries(value.members.map((member) => [keyText(member), valueJson(member.value)]));
  }
}

function keyText(item: Item & { kind: "attribute" }): string {
  return item.computed ? `\${${item.name}}` : templateText(item.name);
}

/** A literal as a template that stands for it. */
function templateText(text: string): string {
  return text.replace(/[$%](?=\{)/g, "$&$&");
}
