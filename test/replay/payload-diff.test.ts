import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "#src/payload/canonical-json.js";
import { type Change, differenceOf } from "#src/replay/payload-diff.js";

const json = fc.jsonValue({ maxDepth: 4, noUnicodeString: false }) as fc.Arbitrary<Json>;

describe("difference of two payloads", () => {
  it.each<[name: string, before: Json, after: Json, changes: readonly Change[]]>([
    ["nothing", { a: [1, { b: null }] }, { a: [1, { b: null }] }, []],
    ["a member", { a: { b: 1 } }, { a: { b: 2 } }, [{ kind: "changed", path: "a.b", before: 1, after: 2 }]],
    ["a kind", { a: [1] }, { a: { "0": 1 } }, [{ kind: "changed", path: "a", before: [1], after: { "0": 1 } }]],
    [
      "members that came and went",
      { gone: 1, same: 2 },
      { same: 2, came: 3 },
      [
        { kind: "removed", path: "gone", before: 1 },
        { kind: "added", path: "came", after: 3 },
      ],
    ],
    ["a member that is null", { a: null }, {}, [{ kind: "removed", path: "a", before: null }]],
    ["an item put before others", ["b", "c"], ["a", "b", "c"], [{ kind: "added", path: "[0]", after: "a" }]],
    ["an item taken out of the middle", ["a", "b", "c"], ["a", "c"], [{ kind: "removed", path: "[1]", before: "b" }]],
    [
      "an item put in front and another rewritten behind",
      { m: [{ t: "x" }, { t: "y" }, { t: "z" }] },
      { m: [{ t: "new" }, { t: "x" }, { t: "Y" }, { t: "z" }] },
      [
        { kind: "added", path: "m[0]", after: { t: "new" } },
        { kind: "changed", path: "m[2].t", before: "y", after: "Y" },
      ],
    ],
    [
      "all items",
      [1, 2],
      [],
      [
        { kind: "removed", path: "[0]", before: 1 },
        { kind: "removed", path: "[1]", before: 2 },
      ],
    ],
    [
      "an odd key",
      { "a key\n": { "0": 1 } },
      { "a key\n": { "0": 2 } },
      [{ kind: "changed", path: '["a key\\n"]["0"]', before: 1, after: 2 }],
    ],
    [
      "a key that objects have of themselves",
      JSON.parse('{"__proto__":1,"toString":2}'),
      {},
      [
        { kind: "removed", path: "__proto__", before: 1 },
        { kind: "removed", path: "toString", before: 2 },
      ],
    ],
    ["the whole", 1, "1", [{ kind: "changed", path: "", before: 1, after: "1" }]],
  ])("should tell %s", (_, before, after, changes) => {
    expect(differenceOf(before, after)).toStrictEqual({ changes, more: 0 });
  });

  it("should list no more than it is asked for, and count the rest", () => {
    const before = Array.from({ length: 50 }, (_, place) => place);
    const after = before.map((value) => -value - 1);
    const { changes, more } = differenceOf(before, after, 10);
    expect(changes).toHaveLength(10);
    expect(more).toBe(40);
  });

  it("should align long lists place by place, in no time", () => {
    const before = Array.from({ length: 20_000 }, (_, place) => `a${place}`);
    const after = before.map((_, place) => `b${place}`);
    expect(differenceOf(before, after).more).toBe(19_000);
  });

  it("should find nothing exactly where there is nothing, and mirror itself", () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        expect(differenceOf(a, structuredClone(a)).changes).toStrictEqual([]);
        const there = differenceOf(a, b).changes;
        const back = differenceOf(b, a).changes;
        expect(there.length === 0).toBe(JSON.stringify(sorted(a)) === JSON.stringify(sorted(b)));
        expect(there.length === 0).toBe(back.length === 0);
      }),
    );
  });
});

function sorted(value: Json): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return { members: members.map(([key, member]) => [key, sorted(member ?? null)]) };
}
