/** Does a bundle come to the digest that it says it has? */
import { selectionText } from "../store/bundle/description.js";
import type { BundleStore } from "../store/bundle/store.js";

export type BundleFinding = {
  /** What it comes to. */
  readonly digest: string;
  /** What it says; null where it was never finished. */
  readonly recorded: string | null;
  readonly ok: boolean;
  /** What is wrong, or null. */
  readonly detail: string | null;
};

export function bundleFinding(bundle: BundleStore): BundleFinding {
  const { digest } = bundle.sum();
  const recorded = bundle.description.digest;
  return { digest, recorded, ok: digest === recorded, detail: detailOf(digest, recorded) };
}

/** Of its making, as it says itself: foreign text. */
export function originOf({ description }: BundleStore): string {
  const { createdAt, source, selection } = description;
  return `exported ${createdAt} from ${source}: ${selectionText(selection)}`;
}

function detailOf(digest: string, recorded: string | null): string | null {
  if (recorded === null) return "no digest yet: the same hookledger export goes on with it";
  return digest === recorded ? null : `it comes to ${digest} and says ${recorded.slice(0, 80)}`;
}
