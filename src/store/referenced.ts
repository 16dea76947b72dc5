/** Every digest that the data of an event names, whatever it is there for: what is kept for too many is kept in vain, no more. */
export function digestsIn(data: string): readonly string[] {
  return data.match(DIGESTS) ?? [];
}

const DIGESTS = /sha256:[0-9a-f]{64}/g;
