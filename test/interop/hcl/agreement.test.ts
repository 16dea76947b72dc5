import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Diagnostics } from "#src/config/diagnostics.js";
import { lex } from "#src/config/lexer.js";
import { parseConfig } from "#src/config/load.js";
import { parseSource } from "#src/config/parse.js";
import { type ScannedItem, scan } from "#src/config/scanner.js";
import { SourceText } from "#src/config/source-text.js";
import { broken, mostlyValid, soup } from "./generated.js";
import { buildReference, type Reference, type ReferenceItem, type Verdict } from "./reference.js";
import { kindOf } from "./token-kinds.js";

const SEED = 20_250_101;
const GENERATED = 3_000;

let reference: Reference;
beforeAll(() => {
  reference = buildReference();
}, 300_000);
afterAll(() => reference.close());

type Place = readonly [line: number, col: number];
type Item = {
  readonly name: string;
  readonly at: Place;
  readonly value: Place | undefined;
  readonly labels: readonly (readonly [text: string, at: Place])[];
  readonly body: readonly Item[];
};

/** What we found, with our columns: Unicode characters. */
function ours(items: readonly ScannedItem[], source: SourceText): readonly Item[] {
  const at = (offset: number): Place => {
    const { line, col } = source.place(offset);
    return [line, col];
  };
  return items.map((item) =>
    item.kind === "attribute"
      ? { name: item.name, at: at(item.start), value: at(item.value.start), labels: [], body: [] }
      : {
          name: item.type,
          at: at(item.start),
          value: undefined,
          labels: item.labels.map((label) => [label.text, at(label.start)] as const),
          body: ours(item.body, source),
        },
  );
}

/** What the reference found, with columns counted from its byte offsets: its own count grapheme clusters. */
function theirs(items: readonly ReferenceItem[], bytes: Buffer): readonly Item[] {
  const at = ({ line, byte }: { readonly line: number; readonly byte: number }): Place => {
    const start = bytes.lastIndexOf(10, byte - 1) + 1;
    const before = bytes.toString("utf8", byte === 0 ? 0 : start, byte).replace(/^\ufeff/, "");
    return [line, [...before].length + 1];
  };
  return items.map((item) => ({
    name: item.name,
    at: at(item.at),
    value: item.kind === "attribute" ? at(item.value) : undefined,
    labels: item.labels.map((label) => [label.text, at(label.at)] as const),
    body: theirs(item.body, bytes),
  }));
}

/** Do we take this as HCL? What the schema says, and keys that are set twice, are other questions. */
async function accepts(text: string): Promise<boolean> {
  const source = new SourceText("f", text);
  const report = new Diagnostics([source]);
  await parseSource(source, report);
  return report.list("error").every(({ message }) => /^key .* is set twice/.test(message));
}

async function expectAgreement(text: string, verdict: Verdict): Promise<void> {
  expect({ text, accepted: await accepts(text) }).toEqual({ text, accepted: verdict.ok });
  if (!verdict.ok) return;
  const source = new SourceText("f", text);
  expect(ours(scan(source.text).items, source), text).toEqual(theirs(verdict.body, Buffer.from(text)));
}

function corpus(kind: "valid" | "invalid" | "stricter"): readonly (readonly [name: string, bytes: Buffer])[] {
  const folder = new URL(`corpus/${kind}/`, import.meta.url);
  return readdirSync(folder).map((name) => [name, readFileSync(new URL(name, folder))] as const);
}

describe("our reading of HCL and HashiCorp's parser", () => {
  it("should agree on every valid file of the corpus: order, names, labels, lines and columns", async () => {
    const files = corpus("valid");
    expect(files.length).toBeGreaterThanOrEqual(60);
    const verdicts = await reference.parse(files.map(([, bytes]) => bytes));
    for (const [i, [name, bytes]] of files.entries()) {
      const verdict = verdicts[i];
      expect({ name, error: verdict?.error }).toEqual({ name, error: undefined });
      if (verdict !== undefined) await expectAgreement(bytes.toString("utf8"), verdict);
    }
  });

  it("should both refuse every invalid file of the corpus", async () => {
    const files = corpus("invalid");
    expect(files.length).toBeGreaterThanOrEqual(60);
    const verdicts = await reference.parse(files.map(([, bytes]) => bytes));
    for (const [i, [name, bytes]] of files.entries()) {
      expect({ name, accepted: verdicts[i]?.ok }).toEqual({ name, accepted: false });
      const result = await parseConfig([{ name, text: bytes }]);
      const errors = result.ok
        ? []
        : result.errors.filter(({ message }) => !/^unknown (attribute|block) /.test(message));
      expect({ name, refused: errors.length > 0 }).toEqual({ name, refused: true });
    }
  });

  it("should differ only where we are stricter", async () => {
    const files = corpus("stricter");
    const verdicts = await reference.parse(files.map(([, bytes]) => bytes));
    const said = new Map<string, string>();
    for (const [i, [name, bytes]] of files.entries()) {
      expect({ name, accepted: verdicts[i]?.ok }).toEqual({ name, accepted: true });
      const result = await parseConfig([{ name, text: bytes }]);
      said.set(name, result.ok ? "accepted" : (result.errors.at(-1)?.message ?? ""));
    }
    expect(Object.fromEntries(said)).toEqual({
      "key-twice.hcl": 'key "b" is set twice; first at key-twice.hcl:1:7',
      "nested-65-deep.hcl": "nested more than 64 levels deep",
      "number-beyond-a-double.hcl": "a number must fit a 64-bit float",
      "overlong.hcl": "not UTF-8",
    });
  });

  it.each([
    ["mostly valid", mostlyValid],
    ["broken", broken],
    ["any", soup],
  ])(
    "should agree on thousands of generated texts: %s",
    async (_, texts) => {
      const generated = fc.sample(texts, { seed: SEED, numRuns: GENERATED });
      const verdicts = await reference.parse(generated);
      for (const [i, text] of generated.entries()) {
        const verdict = verdicts[i];
        if (verdict !== undefined) await expectAgreement(text, verdict);
      }
      expect(verdicts).toHaveLength(generated.length);
    },
    120_000,
  );

  it("should cut any text into the same tokens", async () => {
    const generated = fc.sample(fc.oneof(soup, mostlyValid), { seed: SEED, numRuns: 4 * GENERATED });
    const verdicts = await reference.parse(generated, { tokens: true });
    for (const [i, text] of generated.entries()) {
      const bytes = Buffer.from(text);
      const expected = (verdicts[i]?.tokens ?? []).flatMap(({ type, start, end }) => {
        const kind = kindOf(type, bytes.subarray(start, end));
        return kind === undefined ? [] : [{ kind, start, end }];
      });
      const offset = (units: number) => Buffer.byteLength(text.slice(0, units));
      const found = lex(text).map(({ kind, start, end }) => ({ kind, start: offset(start), end: offset(end) }));
      expect({ text, tokens: joined(found) }).toEqual({ text, tokens: joined(expected) });
    }
  }, 120_000);
});

type Cut = { readonly kind: string; readonly start: number; readonly end: number };

/** Neighbouring literals as one, and neighbouring invalid characters as one: how many there are is nobody's concern. */
function joined(tokens: readonly Cut[]): readonly string[] {
  const cuts: Cut[] = [];
  for (const token of tokens) {
    const last = cuts.at(-1);
    const goesOn = last?.kind === token.kind && last.end === token.start;
    if (last !== undefined && goesOn && (token.kind === "literal" || token.kind === "invalid")) {
      cuts[cuts.length - 1] = { ...last, end: token.end };
    } else {
      cuts.push(token);
    }
  }
  return cuts.map(({ kind, start, end }) => `${kind} ${start}-${end}`);
}
