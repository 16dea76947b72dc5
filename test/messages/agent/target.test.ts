import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DispatchTarget, dispatchKindOf, isAcpSessionKey } from "#src/messages/agent/target.js";

describe("the classification of a resolved target", () => {
  it.each<[string, DispatchTarget, "acp" | "agent"]>([
    ["stored ACP metadata", { sessionKey: "agent:main:main", acp: {} }, "acp"],
    ["an ACP session key", { sessionKey: "agent:codex:acp:9f" }, "acp"],
    ["an ordinary session", { sessionKey: "agent:main:main", acp: null }, "agent"],
    ["nothing that says ACP", {}, "agent"],
    ["a binding to an ACP session key", { sessionKey: "agent:main:main", binding: { sessionKey: "acp:9f" } }, "acp"],
    ["a binding to a session with stored ACP metadata", { binding: { sessionKey: "x", acp: { backend: "c" } } }, "acp"],
    ["a binding to an ordinary session", { sessionKey: "acp:9f", binding: { sessionKey: "agent:main:main" } }, "agent"],
    ["no binding", { sessionKey: "acp:9f", binding: null }, "acp"],
  ])("should be right for %s", (_, target, kind) => {
    expect(dispatchKindOf(target)).toBe(kind);
  });

  it("should not make an agent dispatch of an ACP binding whose session is missing", () => {
    expect(dispatchKindOf({ sessionKey: "agent:main:main", binding: { kind: "acp", acp: null } })).toBe("acp");
    expect(dispatchKindOf({ sessionKey: "agent:main:main", binding: { sessionKey: "agent:c:acp:1" } })).toBe("acp");
  });

  it("should be unknown for a target that is not resolved", () => {
    expect(dispatchKindOf(null)).toBeUndefined();
  });
});

describe("an ACP-shaped session key", () => {
  it.each(["acp:1", "ACP:1", " acp:x", "agent:main:acp:1", "Agent:codex:Acp:discord:7"])("should be %j", (key) => {
    expect(isAcpSessionKey(key)).toBe(true);
  });

  it.each(["", "acp", "acpx:1", "agent:acp:main", "agent::acp:1", "agent:a:b:acp:1", "x:acp:1", "agent:main:acp"])(
    "should not be %j",
    (key) => {
      expect(isAcpSessionKey(key)).toBe(false);
    },
  );

  it("should be told in no time, whatever the key", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 50 }), (text) => !isAcpSessionKey(`agent:${text.replaceAll(":", "")}`)),
    );
    expect(isAcpSessionKey(`agent:${"a".repeat(1_000_000)}`)).toBe(false);
    expect(isAcpSessionKey(" ".repeat(1_000_000))).toBe(false);
  });
});
