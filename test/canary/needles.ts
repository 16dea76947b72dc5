/** Every form in which a secret may turn up in a file or an output, and the search for them. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export type Needle = { readonly form: string; readonly bytes: Buffer };

function escaped(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (control) => `\\u{${control.codePointAt(0)?.toString(16)}}`);
}

export function needlesOf(secret: string): readonly Needle[] {
  const utf8 = Buffer.from(secret);
  const texts: Readonly<Record<string, string>> = {
    raw: secret,
    "in JSON": JSON.stringify(secret).slice(1, -1),
    "in JSON twice": JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1),
    "in JSON as ASCII": [...secret]
      .map((c) => (c < "\x7f" ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`))
      .join(""),
    "in CSV": secret.replaceAll('"', '""'),
    hex: utf8.toString("hex"),
    HEX: utf8.toString("hex").toUpperCase(),
    "percent-encoded": encodeURIComponent(secret),
    "form-encoded": new URLSearchParams({ s: secret }).toString().slice(2),
    reversed: [...secret].reverse().join(""),
    "escaped for a terminal": escaped(secret),
    "in JSON, escaped for a terminal": escaped(JSON.stringify(secret).slice(1, -1)),
    // What a bound has left of it.
    "its beginning": secret.slice(0, 12),
  };
  const base64 = [0, 1, 2].flatMap((offset) => {
    // What a neighbour in front or behind has a part in is left out.
    const sextets = (bytes: number) => (bytes * 8) / 6;
    const text = Buffer.concat([Buffer.alloc(offset), utf8]).toString("base64");
    const own = text.slice(Math.ceil(sextets(offset)), Math.floor(sextets(offset + utf8.length)));
    return [
      { form: `base64 at ${offset}`, bytes: Buffer.from(own) },
      { form: `base64url at ${offset}`, bytes: Buffer.from(own.replaceAll("+", "-").replaceAll("/", "_")) },
    ];
  });
  return [
    ...Object.entries(texts).map(([form, text]) => ({ form, bytes: Buffer.from(text) })),
    { form: "UTF-16", bytes: Buffer.from(secret, "utf16le") },
    ...base64,
  ];
}

/** Where any of the secrets is found, in words. */
export function leaks(
  secrets: readonly string[],
  sources: Readonly<Record<string, string | Uint8Array>>,
): readonly string[] {
  const needles = secrets.flatMap((secret) => needlesOf(secret).map((needle) => ({ secret, ...needle })));
  return Object.entries(sources).flatMap(([source, content]) => {
    const haystack = Buffer.from(content);
    return needles
      .filter(({ bytes }) => haystack.includes(bytes))
      .map(({ secret, form, bytes }) => {
        const at = haystack.indexOf(bytes);
        return `${secret} ${form} in ${source}: ${haystack.subarray(Math.max(0, at - 40), at + 60).toString("latin1")}`;
      });
  });
}

/** Every file below a folder, by its path in it. */
export function filesBelow(folder: string): Readonly<Record<string, Uint8Array>> {
  const names = readdirSync(folder, { recursive: true }).map(String);
  const files = names.filter((name) => statSync(join(folder, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name))]));
}
