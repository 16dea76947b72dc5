/**
 * Plain data cannot say everything that a Struct's bytes can (fields that this build does not know, inside a Value). Frozen
 * objects that lost something keep their source here: returned as they are, they are encoded as they came.
 */

const sources = new WeakMap<object, Uint8Array>();

/** `view` is frozen, all the way down, and stands for the message encoded in `bytes`. */
export function keepSource(view: object, bytes: Uint8Array): void {
  sources.set(view, bytes);
}

export function sourceOf(view: object): Uint8Array | undefined {
  return sources.get(view);
}
