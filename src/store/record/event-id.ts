const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_BITS = (1n << 128n) - 1n;

/**
 * Ids of a dispatch's events: a UUIDv8 of 48 bits of time and 58 of randomness, both from the dispatch's ULID, and 16 bits
 * of revision. No hashing, and a retry carries the same ids. `revision` 0 to 65 535.
 */
export function eventIds(ulid: string): (revision: number) => string {
  let bits = 0n;
  for (const letter of ulid) bits = ((bits << 5n) | BigInt(ALPHABET.indexOf(letter))) & ULID_BITS;
  const time = hex((bits >> 80n) & 0xffff_ffff_ffffn, 12);
  const random = bits & ((1n << 58n) - 1n);
  const high = hex(random >> 46n, 3);
  const middle = hex((0b10n << 14n) | ((random >> 32n) & 0x3fffn), 4);
  const low = hex(random & 0xffff_ffffn, 8);
  const prefix = `${time.slice(0, 8)}-${time.slice(8)}-8${high}-${middle}-${low}`;
  return (revision) => prefix + revision.toString(16).padStart(4, "0");
}

function hex(value: bigint, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
