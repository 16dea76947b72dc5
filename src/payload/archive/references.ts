import { decodeNode, type Part } from "./node.js";

/**
 * Hashes of the chunks that a root or a node refers to itself, each as often as it does; none for bytes that are neither. A leaf
 * that happens to look like a node has references, too: what is kept for them is kept in vain, and nothing is lost.
 */
export function references(bytes: Uint8Array): readonly string[] {
  return hashes(bytes, ({ kind }) => kind !== "literal");
}

/** Those of the references that may have references themselves. */
export function nodeReferences(bytes: Uint8Array): readonly string[] {
  return hashes(bytes, ({ kind }) => kind === "node");
}

function hashes(bytes: Uint8Array, which: (part: Part) => boolean): readonly string[] {
  const parts = decodeNode(bytes)?.parts ?? [];
  return parts.filter(which).map((part) => Buffer.from(part.bytes).toString("hex"));
}
