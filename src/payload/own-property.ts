/** Sets an own, enumerable property, also where the name is `__proto__`. */
export function setOwn(target: Record<PropertyKey, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(target, key, { value, enumerable: true });
  else target[key] = value;
}
