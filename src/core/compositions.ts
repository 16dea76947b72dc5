import { chain } from "./chain.js";
import type { Composition } from "./composition.js";

const COMPOSITIONS: ReadonlyMap<string, Composition> = new Map([["chain", chain]]);

export function compositionNamed(name: string): Composition | undefined {
  return COMPOSITIONS.get(name);
}
