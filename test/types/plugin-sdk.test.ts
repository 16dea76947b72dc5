/** The plugin SDK as its users' compilers see it: checked by `npm run types`. */
import { describe, expectTypeOf, it } from "vitest";
import type { HookHandlers, PreModelCallPayload } from "#src/index.js";
import type { HookContext, Logger, PluginOptions, ServedPlugin, servePlugin, Verdict } from "#src/plugin/index.js";

describe("servePlugin", () => {
  it("should take a name, a version and hooks, and nothing else that is required", () => {
    type Wanted = {
      [Key in keyof PluginOptions]-?: undefined extends PluginOptions[Key] ? never : Key;
    }[keyof PluginOptions];
    expectTypeOf<Wanted>().toEqualTypeOf<"name" | "version" | "hooks">();
    expectTypeOf<typeof servePlugin>().parameters.toEqualTypeOf<[PluginOptions]>();
    expectTypeOf<typeof servePlugin>().returns.toEqualTypeOf<Promise<ServedPlugin>>();
  });

  it("should take the handlers that modules and host functions are", () => {
    expectTypeOf<PluginOptions["hooks"]>().toEqualTypeOf<HookHandlers>();
    const options = {
      name: "redactor",
      version: "1.0.0",
      hooks: {
        "pre-model-call": {
          transform: (payload, ctx) => {
            expectTypeOf(payload).toEqualTypeOf<PreModelCallPayload>();
            expectTypeOf(ctx).toEqualTypeOf<HookContext>();
            expectTypeOf(ctx.log).toEqualTypeOf<Logger>();
            return payload;
          },
        },
        "plan-ready": { veto: async (): Promise<Verdict> => ({ decision: "deny", reason: "no" }) },
      },
    } satisfies PluginOptions;
    expectTypeOf(options).toExtend<PluginOptions>();
  });

  it("should refuse a veto where none counts, and a verdict that is none", () => {
    const veto = { name: "a", version: "1.0.0", hooks: { "session-end": { veto: () => "allow" } } } as const;
    expectTypeOf(veto).not.toExtend<PluginOptions>();
    const verdict = { name: "a", version: "1.0.0", hooks: { "plan-ready": { veto: () => "maybe" } } } as const;
    expectTypeOf(verdict).not.toExtend<PluginOptions>();
  });
});
