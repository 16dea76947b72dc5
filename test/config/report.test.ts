import { describe, expect, it } from "vitest";
import { configError, diagnosticJson, diagnosticText } from "#src/config/report.js";
import type { Diagnostic } from "#src/config/types.js";

const place = { file: "agent.hcl", line: 3, col: 5 };
const bare: Diagnostic = { severity: "error", code: "HL_CONFIG", message: "wrong", place };
const full: Diagnostic = { ...bare, line: "    strikt = true", hint: 'did you mean "strict"?' };

describe("diagnosticText", () => {
  it("should put the offending line and the hint below the message", () => {
    expect(diagnosticText(full)).toBe('agent.hcl:3:5: wrong\n    | strikt = true\n    did you mean "strict"?');
  });

  it("should leave out what there is not", () => {
    expect(diagnosticText(bare)).toBe("agent.hcl:3:5: wrong");
    expect(diagnosticText({ ...bare, line: "  " })).toBe("agent.hcl:3:5: wrong");
  });
});

describe("diagnosticJson", () => {
  it("should have the members that validate prints", () => {
    expect(diagnosticJson(full)).toEqual({
      code: "HL_CONFIG",
      file: "agent.hcl",
      line: 3,
      col: 5,
      message: "wrong",
      hint: 'did you mean "strict"?',
    });
    expect(diagnosticJson(bare)).toMatchObject({ hint: null });
  });
});

describe("configError", () => {
  it("should hold everything that is wrong, with the code and place of the first", () => {
    const error = configError("agent.hcl", [{ ...full, code: "HL_LIMIT_DEPTH" }, bare]);
    expect(error).toMatchObject({ code: "HL_LIMIT_DEPTH", place, hint: 'did you mean "strict"?' });
    expect(error.message).toBe(`2 errors in agent.hcl\n${diagnosticText(full)}\n${diagnosticText(bare)}`);
  });

  it("should count one error as one", () => {
    expect(configError("conf", [bare]).message).toMatch(/^1 error in conf\n/);
  });
});
