/** A kernel that knows one chain, in which everybody stands already. */
import type { Chains, FrozenChain } from "#src/dispatch/chain.js";

export function only(chain: FrozenChain): Chains {
  const at = (point: string): FrozenChain => {
    if (point !== chain.point) throw new Error(`no chain for ${point}`);
    return chain;
  };
  return { at, asItStands: at };
}
