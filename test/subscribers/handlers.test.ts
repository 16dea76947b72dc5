import { describe, expect, it } from "vitest";
import type { HookHandlers, Verdict } from "#src/subscribers/handlers.js";
import { bindHost } from "#src/subscribers/host.js";
import { call, provider } from "../support/subscriber-calls.js";

describe("the types of handlers", () => {
  it("should fit what an author writes", async () => {
    const written: string[] = [];
    const handlers: HookHandlers = {
      "pre-model-call": {
        transform(payload) {
          return { ...payload, messages: payload.messages.filter((message) => message.role === "ROLE_USER") };
        },
      },
      "plan-ready": {
        veto: ({ plan }) => ((plan?.items.length ?? 0) > 20 ? { decision: "deny", reason: "too many" } : "allow"),
      },
      "post-tool-call": {
        async observe(payload, ctx) {
          written.push(`${ctx.point} ${payload.call?.toolName}`);
        },
      },
    };
    const needed = [
      { point: "pre-model-call", mode: "transform" },
      { point: "plan-ready", mode: "veto" },
      { point: "post-tool-call", mode: "observe" },
    ] as const;
    const transport = bindHost(provider({ kind: "host" }), needed, { sub: handlers }, { config: {}, log: () => {} });
    const answers = await Promise.all(needed.map(({ point, mode }) => transport.invoke(call(mode, { point }))));
    expect(answers.map((answer) => answer.class)).toEqual(["transformed", "allow", "ack"]);
    expect(written).toEqual(["post-tool-call read"]);
  });

  it("should not fit what cannot be right", () => {
    const wrong: readonly HookHandlers[] = [
      // @ts-expect-error there is no such point
      { "pre-modl-call": { transform: (payload: never) => payload } },
      // @ts-expect-error a veto has no say there
      { "session-start": { veto: () => "allow" } },
      // @ts-expect-error no such verdict
      { "plan-ready": { veto: () => "perhaps" } },
      // @ts-expect-error the messages are left out
      { "pre-model-call": { transform: () => ({}) } },
      {
        "pre-tool-call": {
          // @ts-expect-error the payload is frozen
          observe: (payload) => (payload.call = undefined),
        },
      },
    ];
    const verdict: Verdict = { decision: "deny", reason: "no" };
    expect([wrong.length, verdict.decision]).toEqual([5, "deny"]);
  });
});
