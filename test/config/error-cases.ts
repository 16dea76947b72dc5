import { describe, expect, it } from "vitest";
import { errorsOf, unmark } from "./marked.js";

/** What a case is about, its text with the expected place marked, the message, and the hint where one matters. */
export type Case = readonly [what: string, marked: string, message: string, hint?: string];

/** Lines 1 to 4 of many a case. */
export const PROVIDERS = `required_providers {
  a = { source = "host" }
  b = { source = "host" }
}
`;

/** Each text has exactly this one error, at its mark. */
export function describeErrors(subject: string, cases: readonly Case[]): void {
  describe(subject, () => {
    it.each(cases.map((one) => [one[0], one] as const))("should point at %s", async (_, [, marked, message, hint]) => {
      const { text, line, col } = unmark(marked);
      const errors = await errorsOf(text);
      expect(errors.map(({ place, message: said }) => ({ ...place, message: said }))).toEqual([
        { file: "agent.hcl", line, col, message },
      ]);
      if (hint !== undefined) expect(errors[0]?.hint).toBe(hint);
      const offending = text.split("\n")[line - 1];
      expect(errors[0]).toMatchObject({ severity: "error", code: "HL_CONFIG", line: offending?.slice(0, 200) });
    });
  });
}
