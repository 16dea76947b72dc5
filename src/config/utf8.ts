const REPLACEMENT = "\ufffd";

type Decoded = {
  /** The text, or what stands before the first bytes that are no UTF-8. A byte-order mark stays. */
  readonly text: string;
  /** Set where the bytes are no UTF-8: what that means, for a hint. */
  readonly invalidAt: string | undefined;
};

export function decodeUtf8(bytes: Uint8Array): Decoded {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  let offset = 0;
  for (let at = text.indexOf(REPLACEMENT), from = 0; at >= 0; from = at, at = text.indexOf(REPLACEMENT, at + 1)) {
    offset += Buffer.byteLength(text.slice(from, at));
    const isGenuine = bytes[offset] === 0xef && bytes[offset + 1] === 0xbf && bytes[offset + 2] === 0xbd;
    if (!isGenuine) return { text: text.slice(0, at), invalidAt: hint(bytes, offset) };
  }
  return { text, invalidAt: undefined };
}

function hint(bytes: Uint8Array, offset: number): string {
  const utf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  return utf16 ? "it looks like UTF-16: save it as UTF-8" : `byte ${offset} of the file begins no character`;
}
