import { chain } from "./chain.js";
import { claim } from "./claim.js";
import type { Composition } from "./composition.js";
import { notify } from "./notify.js";
import { rewrite } from "./rewrite.js";
import { waterfall } from "./waterfall.js";

const COMPOSITIONS: ReadonlyMap<string, Composition> = new Map([
  ["chain", chain],
  ["claim", claim],
  ["rewrite", rewrite],
  ["waterfall", waterfall],
  ["notify", notify],
]);

export function compositionNamed(name: string): Composition | undefined {
  return COMPOSITIONS.get(name);
}
