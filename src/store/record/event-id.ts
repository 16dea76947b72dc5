const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/**
 * Ids of a dispatch's events: a UUIDv8 of 48 bits of time and 58 of randomness, both from the dispatch's ULID, and 16 bits
 * of revision. No hashing, and a retry carries the same ids. `revision` 0 to 65 535.
 */
export function eventIds(ulid: string): (revision: number) => string {
  const bits = hexOf(ulid);
  const middle = Number.parseInt(bits.slice(16, 24), 16);
  const versioned = `8${hex((middle >>> 14) & 0xfff, 3)}-${hex(0x8000 | (middle & 0x3fff), 4)}`;
  const prefix = `${bits.slice(0, 8)}-${bits.slice(8, 12)}-${versioned}-${bits.slice(24)}`;
  return (revision) => prefix + hex(revision, 4);
}

/** The 128 bits of a ULID as 32 hex digits: its first two letters carry 8 bits, every four more carry 20. */
function hexOf(ulid: string): string {
  let digits = hex(numberAt(ulid, 0, 2) & 0xff, 2);
  for (let place = 2; place < ulid.length; place += 4) digits += hex(numberAt(ulid, place, place + 4), 5);
  return digits;
}

function numberAt(ulid: string, start: number, end: number): number {
  let value = 0;
  for (let place = start; place < end; place++) value = value * 32 + ALPHABET.indexOf(ulid.charAt(place));
  return value;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
