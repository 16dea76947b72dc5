import { describe, expect, it } from "vitest";
import { CHECKS } from "#src/conformance/api.js";
import { documentAt, rowsOf, sectionOf } from "../docs/documents.js";

describe("docs/conformance.md", () => {
  it("should have every check in its order, with its modes", () => {
    const rows = rowsOf(sectionOf(documentAt("docs/conformance.md"), "## The checks"));
    const said = rows.filter(([name]) => name?.startsWith("`")).map(([name = "", modes = ""]) => [name, modes]);
    expect(said).toEqual(
      CHECKS.map(({ name, modes, takes }) => {
        const where = modes.length === 3 ? "all" : modes.join(", ");
        return [`\`${name}\``, takes === "request" ? `${where}; plugins and addresses` : where];
      }),
    );
  });
});
