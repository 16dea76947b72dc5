/** What handlers are given is theirs: nobody else sees what they do to it. */

/**
 * A deep copy of lists, plain objects, bytes and dates. Anything else (functions, objects of a class) is handed on as it is; a cycle
 * stays one. However deep a value nests, it is copied: nobody gets past a handler by nesting.
 */
export function clone<T>(value: T): T;
export function clone(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const copies = new Map<object, object>();
  const unfilled: Unfilled[] = [];
  const copyOf = (source: unknown): unknown => {
    if (typeof source !== "object" || source === null) return source;
    const known = copies.get(source);
    if (known !== undefined) return known;
    const copy = emptyCopy(source, unfilled);
    copies.set(source, copy);
    return copy;
  };
  const copy = copyOf(value);
  for (let next = unfilled.pop(); next !== undefined; next = unfilled.pop()) fill(next, copyOf);
  return copy;
}

type Unfilled =
  | { readonly source: readonly unknown[]; readonly copy: unknown[]; readonly list: true }
  | { readonly source: object; readonly copy: object; readonly list: false };

function emptyCopy(source: object, unfilled: Unfilled[]): object {
  if (Buffer.isBuffer(source)) return Buffer.from(source);
  if (source instanceof Uint8Array) return Uint8Array.from(source);
  if (source instanceof Date) return new Date(source);
  if (isList(source)) {
    const copy: unknown[] = [];
    unfilled.push({ source, copy, list: true });
    return copy;
  }
  if (!isPlain(source)) return source;
  const copy = {};
  unfilled.push({ source, copy, list: false });
  return copy;
}

function fill(unfilled: Unfilled, copyOf: (source: unknown) => unknown): void {
  if (unfilled.list) {
    const { source, copy } = unfilled;
    for (let i = 0; i < source.length; i++) copy[i] = copyOf(source[i]);
    return;
  }
  const { source, copy } = unfilled;
  for (const key of Object.keys(source)) {
    const value = copyOf(Reflect.get(source, key));
    Object.defineProperty(copy, key, { value, configurable: true, enumerable: true, writable: true });
  }
}

/** Of no class, whichever realm it comes from. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

function isList(value: object): value is readonly unknown[] {
  return Array.isArray(value);
}
