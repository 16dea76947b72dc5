const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|\$\$\{|%%\{/gsu;
const MAX_NUMBER_CHARS = 512;
const MAX_EXPONENT = 400;

/** What a quoted text without templates (`"…"`, quotes included) stands for. An escape that HCL does not know stays. */
export function decodeQuoted(quoted: string): string {
  return quoted.slice(1, quoted.endsWith('"') ? -1 : undefined).replace(ESCAPE, (whole, four, eight, letter) => {
    const code = Number.parseInt(four ?? eight ?? "", 16);
    if (code <= 0x10ffff) return String.fromCodePoint(code);
    switch (letter) {
      case "n":
        return "\n";
      case "r":
        return "\r";
      case "t":
        return "\t";
      case '"':
      case "\\":
        return letter;
      case undefined:
        return whole.startsWith("\\") ? whole : whole.slice(1);
      default:
        return whole;
    }
  });
}

/** Is this number literal too large for a double, or too long to be looked at? The grammar would spell it out. */
export function outOfRange(literal: string): boolean {
  if (literal.length > MAX_NUMBER_CHARS) return true;
  if (!Number.isFinite(Number(literal)) && !Number.isNaN(Number(literal))) return true;
  return [...literal.matchAll(/[eE][+-]?(\d+)/g)].some((exponent) => Number(exponent[1]) > MAX_EXPONENT);
}
