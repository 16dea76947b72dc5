import { describe, expect, it } from "vitest";
import {
  compareSpecificity,
  evaluatePolicy,
  type PlanItemFacts,
  type PolicyAction,
  type PolicyMatch,
  type PolicyRule,
  specificityOf,
} from "#src/core/policy.js";

const WRITE: PlanItemFacts = {
  itemId: "i0",
  provider: "filesystem",
  toolName: "write",
  kind: "resource",
  risk: "high",
  incoming: "pending",
  decidedBy: "",
};

function item(told: Partial<PlanItemFacts>): PlanItemFacts {
  return { ...WRITE, ...told };
}

function rule(name: string, match: PolicyMatch, action: PolicyAction, reason?: string): PolicyRule {
  return { name, match, action, ...(reason === undefined ? {} : { reason }) };
}

function verdict(rules: readonly PolicyRule[], facts: PlanItemFacts) {
  const [only, ...others] = evaluatePolicy(rules, [facts]);
  expect(others).toStrictEqual([]);
  return only;
}

/** The four fields from the most telling to the least, each matching `WRITE`. */
const FIELDS: readonly PolicyMatch[] = [
  { tool_name: "write" },
  { provider: "filesystem" },
  { risk: "high" },
  { kind: "resource" },
];
/** All sixteen combinations, the most specific first: binary counting down, tool_name the highest bit. */
const BY_SPECIFICITY: readonly PolicyMatch[] = Array.from({ length: 16 }, (_, at) =>
  Object.assign({}, ...FIELDS.filter((_, bit) => ((15 - at) >> (3 - bit)) & 1)),
);

describe("policy", () => {
  describe("without a rule that matches", () => {
    it.each([
      ["resource", "ask"],
      ["data_source", "allow"],
      ["interactive", "allow"],
      ["unspecified", "ask"],
    ] as const)("should answer for a %s with %s", (kind, decision) => {
      const expected = { itemId: "i0", decision, decidedBy: "policy:default" };
      expect(verdict([], item({ kind }))).toStrictEqual(expected);
      expect(verdict([rule("other", { tool_name: "read" }, "deny")], item({ kind }))).toStrictEqual(expected);
    });
  });

  describe("matching", () => {
    it.each(FIELDS.map((match) => [match]))("should match on %j", (match) => {
      expect(verdict([rule("r", match, "allow")], WRITE)).toStrictEqual({
        itemId: "i0",
        decision: "allow",
        decidedBy: "policy:r",
      });
    });

    it.each([
      [{ tool_name: "Write" }],
      [{ tool_name: "writ" }],
      [{ provider: "Filesystem" }],
      [{ provider: "" }],
      [{ risk: "critical" }],
      [{ kind: "data_source" }],
      [{ tool_name: "write", provider: "other" }],
      [{ tool_name: "write", provider: "filesystem", risk: "high", kind: "data_source" }],
    ] as const)("should be exact and want every field of %j", (match) => {
      expect(verdict([rule("r", match, "deny")], WRITE)).toMatchObject({ decidedBy: "policy:default" });
    });

    it("should let an empty match stand for every item", () => {
      for (const kind of ["resource", "data_source", "interactive", "unspecified"] as const) {
        expect(verdict([rule("all", {}, "deny")], item({ kind }))).toMatchObject({
          decision: "deny",
          decidedBy: "policy:all",
        });
      }
    });

    it("should take an unspecified kind for a resource", () => {
      const rules = [
        rule("resources", { kind: "resource" }, "deny"),
        rule("sources", { kind: "data_source" }, "allow"),
      ];
      expect(verdict(rules, item({ kind: "unspecified" }))).toMatchObject({ decidedBy: "policy:resources" });
    });

    it("should match no interactive item on a kind", () => {
      const rules = [rule("resources", { kind: "resource" }, "deny"), rule("sources", { kind: "data_source" }, "deny")];
      expect(verdict(rules, item({ kind: "interactive" }))).toMatchObject({ decision: "allow" });
    });

    it("should match no item without a risk on a risk", () => {
      const { risk: _, ...unknown } = WRITE;
      expect(verdict([rule("r", { risk: "high" }, "deny")], unknown)).toMatchObject({ decidedBy: "policy:default" });
    });
  });

  describe("specificity", () => {
    it("should be which fields are set, tool_name first, kind last", () => {
      expect(specificityOf({ risk: "low", tool_name: "write" })).toStrictEqual([true, false, true, false]);
      expect(specificityOf({ kind: "resource", provider: "p" })).toStrictEqual([false, true, false, true]);
    });

    it("should order all sixteen combinations like binary numbers", () => {
      BY_SPECIFICITY.forEach((match, at) => {
        BY_SPECIFICITY.forEach((other, place) => {
          expect(Math.sign(compareSpecificity(specificityOf(match), specificityOf(other)))).toBe(Math.sign(place - at));
        });
      });
    });

    it("should let the more specific of any two rules win, wherever it stands and whatever it says", () => {
      BY_SPECIFICITY.forEach((match, at) => {
        for (const weaker of BY_SPECIFICITY.slice(at + 1)) {
          const rules = [rule("weaker", weaker, "deny"), rule("stronger", match, "allow")];
          expect(verdict(rules, WRITE)).toMatchObject({ decidedBy: "policy:stronger", decision: "allow" });
          expect(verdict(rules.toReversed(), WRITE)).toMatchObject({ decidedBy: "policy:stronger", decision: "allow" });
        }
      });
    });

    it("should rank one tool_name above every other field together", () => {
      const rules = [
        rule("three", { provider: "filesystem", risk: "high", kind: "resource" }, "deny"),
        rule("tool", { tool_name: "write" }, "ask"),
      ];
      expect(verdict(rules, WRITE)).toMatchObject({ decidedBy: "policy:tool", decision: "ask" });
    });
  });

  describe("answers", () => {
    it.each(["allow", "ask", "deny"] as const)("should carry %s and the rule's reason for a resource", (action) => {
      expect(verdict([rule("gate", {}, action, "because")], WRITE)).toStrictEqual({
        itemId: "i0",
        decision: action,
        decidedBy: "policy:gate",
        reason: "because",
      });
    });

    it.each(["data_source", "interactive"] as const)("should turn ask about a %s into deny and say why", (kind) => {
      expect(verdict([rule("gate", {}, "ask", "because")], item({ kind }))).toStrictEqual({
        itemId: "i0",
        decision: "deny",
        decidedBy: "policy:gate",
        reason: `nobody can be asked about a ${kind} item`,
      });
    });

    it("should ask about an item of unspecified kind", () => {
      expect(verdict([rule("gate", {}, "ask")], item({ kind: "unspecified" }))).toMatchObject({ decision: "ask" });
    });
  });

  describe("what an item came with", () => {
    it("should let an incoming deny stand with who made it, whatever the rules say", () => {
      const denied = item({ incoming: "deny", decidedBy: "planner" });
      const expected = { itemId: "i0", decision: "deny", decidedBy: "planner" };
      expect(verdict([], denied)).toStrictEqual(expected);
      expect(verdict([rule("all", {}, "allow", "because")], denied)).toStrictEqual(expected);
    });

    it.each(["pending", "allow", "ask", "unspecified"] as const)(
      "should decide afresh over an incoming %s",
      (incoming) => {
        const told = item({ incoming, decidedBy: "planner" });
        expect(verdict([], told)).toStrictEqual({ itemId: "i0", decision: "ask", decidedBy: "policy:default" });
        expect(verdict([rule("r", {}, "deny")], told)).toMatchObject({ decision: "deny", decidedBy: "policy:r" });
      },
    );
  });

  it("should answer for every item, in the plan's order", () => {
    const items = ["b", "a", "__proto__"].map((itemId, at) =>
      item({ itemId, kind: at === 1 ? "data_source" : "resource" }),
    );
    expect(evaluatePolicy([], items).map(({ itemId, decision }) => [itemId, decision])).toStrictEqual([
      ["b", "ask"],
      ["a", "allow"],
      ["__proto__", "ask"],
    ]);
    expect(evaluatePolicy([rule("r", {}, "deny")], [])).toStrictEqual([]);
  });
});
