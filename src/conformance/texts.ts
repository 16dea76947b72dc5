/** Texts that payloads hold. */

import fc from "fast-check";

/** Any code point, some texts that programs trip over, and now and then one of 64 KiB. Shrinks to short and plain. */
export function anyText(): fc.Arbitrary<string> {
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 60, arbitrary: fc.string({ maxLength: 12 }) },
    { weight: 30, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
    { weight: 10, arbitrary: fc.constantFrom(...ODD) },
    { weight: 1, arbitrary: fc.constant("large ".repeat(11_000)) },
  );
}

export function plainText(): fc.Arbitrary<string> {
  return fc.constantFrom("", "a", "b");
}

const ODD = [
  "",
  " ",
  "__proto__",
  "constructor",
  "null",
  "%s%n",
  `\${jndi:x}`,
  "../../etc/passwd",
  "line\r\nbreak",
  "\u0000",
  "\u001b[31m",
  "\u202e\u200b",
  "e\u0301\ufeff",
  "\u{1F469}\u200d\u{1F469}\u200d\u{1F467}",
  "\u{10FFFF}",
];
