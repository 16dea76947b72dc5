/** Payloads with much in common: messages of a conversation, each a chunk when it is cut. */

/** Bytes of message `n`, pseudo-random and longer than what is kept inside its manifest. */
export function message(n: number, bytes = 1500): Uint8Array {
  const out = new Uint8Array(bytes);
  let state = (n + 1) * 2_654_435_761;
  for (let i = 0; i < bytes; i++) {
    state = Math.imul(state ^ (state >>> 15), 2_246_822_519) + 1;
    out[i] = 32 + ((state >>> 8) % 90);
  }
  return out;
}

/** A payload of these messages, as HookPayload encodes a variant with a repeated field. */
export function conversation(messages: readonly number[], bytes?: number): Uint8Array {
  const body = messages.map((n) => field(1, message(n, bytes)));
  return field(2, Buffer.concat(body));
}

function field(number: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.of((number << 3) | 2), varint(bytes.length), bytes]);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
  return Uint8Array.from(bytes);
}
