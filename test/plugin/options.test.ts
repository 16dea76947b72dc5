import { describe, expect, it } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { checkOptions, type PluginOptions } from "#src/plugin/options.js";

const GOOD: PluginOptions = { name: "gate", version: "1.0.0", hooks: { "plan-ready": { veto: () => "deny" } } };

function refusal(options: unknown): string {
  try {
    checkOptions(options as PluginOptions);
  } catch (error) {
    if (error instanceof HookledgerError && error.code === "HL_USAGE") return error.message;
    throw error;
  }
  return "none";
}

describe("checkOptions", () => {
  it("should fill in what is left out, and list the handlers", () => {
    const hooks: object = { ...GOOD.hooks, "post-apply": { observe: () => {}, transform: undefined } };
    expect(checkOptions({ ...GOOD, hooks })).toMatchObject({
      protocolVersion: 1,
      cookie: { key: "PLUGGABLEHARNESS_AGENT_PLUGIN" },
      handlers: [
        { point: "plan-ready", mode: "veto" },
        { point: "post-apply", mode: "observe" },
      ],
    });
  });

  it.each([
    [undefined, "it is given no options"],
    [{ ...GOOD, name: undefined }, "`name` is missing"],
    [{ ...GOOD, name: "Gate" }, '`name` is "Gate"'],
    [{ ...GOOD, version: "1.0" }, '`version` is "1.0"'],
    [{ ...GOOD, version: 1 }, "`version` is 1"],
    [{ ...GOOD, protocolVersion: 1.5 }, "`protocolVersion` is 1.5"],
    [{ ...GOOD, cookie: { key: "A=B", value: "c" } }, "`cookie` is not usable"],
    [{ ...GOOD, cookie: { key: "A" } }, "`cookie` is not usable"],
    [{ ...GOOD, hooks: undefined }, "`hooks` is missing"],
    [{ ...GOOD, hooks: {} }, "`hooks` has no handler"],
    [{ ...GOOD, hooks: { "plan-ready": {} } }, "`hooks` has no handler"],
    [{ ...GOOD, hooks: { plan_ready: {} } }, '"plan_ready" is no hook point'],
    [{ ...GOOD, hooks: { "plan-ready": () => "allow" } }, '"plan-ready" is a function, not its handlers by mode'],
    [{ ...GOOD, hooks: { "plan-ready": { vote: () => {} } } }, '"plan-ready" has a handler for "vote"'],
    [{ ...GOOD, hooks: { "plan-ready": { veto: "allow" } } }, 'plan-ready.veto is "allow", not a function'],
    [{ ...GOOD, hooks: { "session-end": { veto: () => "allow" } } }, "session-end bears no veto"],
  ])("should refuse %j", (options, expected) => {
    expect(refusal(options)).toContain(`servePlugin: ${expected}`);
  });
});
