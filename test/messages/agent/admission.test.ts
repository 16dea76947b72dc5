import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mayAdmitDurably } from "#src/messages/agent/admission.js";
import type { DispatchKind } from "#src/messages/types.js";
import { gateway } from "../inbound/gateway.js";
import { ACP, AGENT, turnOf } from "./turn.js";

const HANDLED = { handled: true, queuedFinal: false, counts: { tool: 0, block: 0, final: 0 } };

async function admits(eligible: unknown, context: object): Promise<boolean> {
  const options = JSON.parse(JSON.stringify({ eligibleDispatchKinds: eligible }));
  const { hooks } = await gateway({ on: { p: (api) => api.on("reply_dispatch", () => HANDLED, options) } });
  return mayAdmitDurably(hooks.runs, context);
}

describe("durable chat admission", () => {
  it("should be open where no reply_dispatch hook is registered", async () => {
    const { hooks } = await gateway({ on: { p: (api) => api.on("before_dispatch", () => null) } });
    expect(mayAdmitDurably(hooks.runs, { dispatchKind: "agent" })).toBe(true);
  });

  it("should not be blocked for ordinary agent sessions by an ACP-only hook", async () => {
    expect(await admits(["acp"], { dispatchKind: "agent" })).toBe(true);
    expect(await admits(["acp"], { dispatchKind: "acp" })).toBe(false);
  });

  it.each([undefined, [], "acp", [null], ["acp", "unknown"], { 0: "acp" }])(
    "should be blocked by a hook whose eligibility list is omitted, empty, malformed or partly unknown: %o",
    async (eligible) => {
      expect(await admits(eligible, { dispatchKind: "agent" })).toBe(false);
    },
  );

  it("should be blocked by a hook whose eligibility list has a hole", async () => {
    const sparse: DispatchKind[] = [];
    sparse[1] = "acp";
    const { hooks } = await gateway({
      on: { p: (api) => api.on("reply_dispatch", () => HANDLED, { eligibleDispatchKinds: sparse }) },
    });
    expect(mayAdmitDurably(hooks.runs, { dispatchKind: "agent" })).toBe(false);
  });

  it.each([{}, { dispatchKind: "unheard of" }])(
    "should be blocked by a restricted hook where the dispatch context is missing or unknown: %o",
    async (context) => {
      expect(await admits(["acp"], context)).toBe(false);
    },
  );

  it("should be the same eligibility check that is applied before invocation", async () => {
    const kinds = fc.constantFrom<DispatchKind | "unheard of">("acp", "agent", "unheard of");
    const handlers = fc.array(fc.option(fc.array(kinds, { maxLength: 3 })), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(handlers, fc.constantFrom(ACP, AGENT, null), async (lists, target) => {
        let asked = false;
        const handler = () => {
          asked = true;
          return null;
        };
        const { hooks } = await gateway({
          on: {
            p: (api) => {
              for (const list of lists) {
                const options = JSON.parse(JSON.stringify(list === null ? {} : { eligibleDispatchKinds: list }));
                api.on("reply_dispatch", handler, options);
              }
            },
          },
        });
        const context = target === null ? {} : { dispatchKind: target === ACP ? ("acp" as const) : ("agent" as const) };
        await turnOf(hooks.runs, { target }).turn.takeover();
        expect(mayAdmitDurably(hooks.runs, context)).toBe(!asked);
      }),
      { numRuns: 60 },
    );
  });
});
