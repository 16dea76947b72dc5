/** ULIDs: 48 bits of milliseconds and 80 bits of randomness as 26 characters of Crockford's base 32, upper case. */

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const MAX_TIME = 2 ** 48 - 1;

/** `timeMs`: whole ms since 1970, at most 2^48 - 1; `random`: 10 bytes. Throws a RangeError on anything else. */
export function ulid(timeMs: number, random: Uint8Array): string {
  if (!Number.isSafeInteger(timeMs) || timeMs < 0 || timeMs > MAX_TIME)
    throw new RangeError(`no ULID has time ${timeMs}`);
  if (random.length !== 10) throw new RangeError(`a ULID takes 10 random bytes, not ${random.length}`);
  let time = "";
  for (let rest = timeMs, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = ALPHABET.charAt(rest % 32) + time;
  return time + base32(random);
}

/** Is this text a ULID in canonical (upper) case? */
export function isUlid(text: string): boolean {
  return ULID.test(text);
}

function base32(bytes: Uint8Array): string {
  let text = "";
  let window = 0;
  let bits = 0;
  for (const byte of bytes) {
    window = ((window << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET.charAt((window >> (bits - 5)) & 31);
  }
  return text;
}
