#!/usr/bin/env node
// Takes what the patterns of the provider block match out of all text that a model is about to be sent: what was said, and the
// arguments and results of tools. Pictures, documents and thinking, which is signed, stay as they are.
import { servePlugin } from "hookledger/plugin";

/** @type {import("hookledger/plugin").HookHandlers} */
const hooks = {
  "pre-model-call": {
    transform(payload, ctx) {
      const redactor = new Redactor(ctx.config.patterns);
      const messages = payload.messages.map((message) => ({ ...message, content: redactor.blocks(message.content) }));
      const found = [...redactor.found].map(([name, count]) => `${name}: ${count}`);
      if (found.length > 0) ctx.log.info(`took out ${found.join(", ")}`);
      return { ...payload, messages };
    },
  },
};

/** Of one call: counts what it takes out, by the pattern's name. */
class Redactor {
  found = new Map();
  #patterns;

  /** Throws on anything but regular expressions by name: unredacted, nothing goes on. */
  constructor(patterns) {
    if (typeof patterns !== "object" || patterns === null) throw new TypeError("the provider block has no patterns");
    this.#patterns = Object.entries(patterns).map(([name, source]) => [name, new RegExp(source, "gu")]);
  }

  blocks(content) {
    return content.map((block) => this.#block(block));
  }

  #block(block) {
    const { text, toolUse, toolResult } = block;
    if (text !== undefined) return { ...block, text: { ...text, text: this.#text(text.text) } };
    if (toolUse !== undefined) return { ...block, toolUse: { ...toolUse, arguments: this.#data(toolUse.arguments) } };
    if (toolResult !== undefined)
      return { ...block, toolResult: { ...toolResult, content: this.blocks(toolResult.content) } };
    return block;
  }

  /** Arguments are plain data, in whose keys a secret can stand, too. */
  #data(value) {
    if (typeof value === "string") return this.#text(value);
    if (Array.isArray(value)) return value.map((item) => this.#data(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [this.#text(key), this.#data(member)]));
  }

  #text(text) {
    return this.#patterns.reduce((rest, [name, pattern]) => rest.replace(pattern, () => this.#mark(name)), text);
  }

  #mark(name) {
    this.found.set(name, (this.found.get(name) ?? 0) + 1);
    return `[${name}]`;
  }
}

await servePlugin({ name: "redactor", version: "1.0.0", hooks });
