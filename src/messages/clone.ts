/** What handlers are given is theirs: nobody else sees what they do to it. */

/**
 * A deep copy of lists, plain objects, bytes and dates. Anything else (functions, objects of a class) is handed on as it is; a cycle
 * stays one.
 */
export function clone<T>(value: T): T;
export function clone(value: unknown): unknown {
  return cloned(value, new Map());
}

function cloned(value: unknown, copies: Map<object, object>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  if (value instanceof Uint8Array) return remember(value, Uint8Array.from(value), copies);
  if (value instanceof Date) return remember(value, new Date(value), copies);
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    copies.set(value, copy);
    for (let i = 0; i < value.length; i++) copy[i] = cloned(value[i], copies);
    return copy;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return value;
  const copy: object = {};
  copies.set(value, copy);
  for (const key of Object.keys(value)) {
    const member = cloned(Reflect.get(value, key), copies);
    Object.defineProperty(copy, key, { value: member, configurable: true, enumerable: true, writable: true });
  }
  return copy;
}

function remember<T extends object>(value: object, copy: T, copies: Map<object, object>): T {
  copies.set(value, copy);
  return copy;
}
