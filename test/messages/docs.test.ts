import { describe, expect, it } from "vitest";
import { MESSAGE_HOOKS } from "#src/messages/hooks.js";
import { documentAt, rowsOf, sectionOf } from "../docs/documents.js";

const COMPOSITIONS = {
  claim: { asked: /^one after the other/, stops: "`handled`", returns: /^`\{ handled, / },
  notify: { asked: /^all at once/, stops: "nothing", returns: /^nothing that counts$/ },
  waterfall: { asked: /^one after the other$/, stops: "`cancel: true`", returns: /^`\{ payload\?, cancel\?/ },
  rewrite: { asked: /^one after the other$/, stops: "`cancel: true`", returns: /^`\{ content\?, cancel\?/ },
};

describe("docs/message-hooks.md", () => {
  const rows = rowsOf(sectionOf(documentAt("docs/message-hooks.md"), "## The hooks"));

  it("should have a row for every hook, and no other", () => {
    expect(rows.map(([hook]) => hook)).toEqual(Object.keys(MESSAGE_HOOKS).map((hook) => `\`${hook}\``));
  });

  it.each(Object.entries(MESSAGE_HOOKS))("should tell the truth about %s", (hook, rules) => {
    const [, asked = "", , returns, stops, time] = rows.find(([name]) => name === `\`${hook}\``) ?? [];
    const composition = COMPOSITIONS[rules.composition];
    expect(asked).toMatch(composition.asked);
    expect(asked.includes("`eligible")).toBe(rules.eligibility !== null);
    if (rules.eligibility !== null) expect(asked).toContain(`\`${rules.eligibility.option}\``);
    expect(returns).toMatch(composition.returns);
    expect(stops).toBe(composition.stops);
    expect(time).toBe(rules.timeoutMs === null ? "no limit" : `${rules.timeoutMs / 1000} s`);
  });
});
