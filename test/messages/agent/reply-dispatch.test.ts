import { describe, expect, it } from "vitest";
import type { PluginApi } from "#src/messages/plugin.js";
import type { ReplyDispatchContext, ReplyDispatchEvent } from "#src/messages/types.js";
import { gate, gateway, never } from "../inbound/gateway.js";
import { ACP, AGENT, EVENT, turnOf } from "./turn.js";

const NOBODYS = { tool: 0, block: 0, final: 0 };
const HANDLED = { handled: true, queuedFinal: true, counts: { tool: 2, block: 1, final: 1 } };

describe("reply_dispatch", () => {
  it("should receive the finalized message context and a host dispatcher", async () => {
    const seen: [ReplyDispatchEvent, ReplyDispatchContext][] = [];
    const { hooks } = await gateway({
      on: {
        p: (api) =>
          api.on("reply_dispatch", (event, ctx) => {
            seen.push([event, ctx]);
            ctx.dispatcher.sendFinalReply({ text: "taken over" });
            ctx.recordProcessed("completed", { reason: "taken" });
            ctx.markIdle("over");
            return HANDLED;
          }),
      },
    });
    const signal = new AbortController().signal;
    const { turn, dispatcher, reported } = turnOf(hooks.runs, { signal });
    await turn.takeover();
    expect(seen[0]?.[0]).toEqual(EVENT);
    expect(seen[0]?.[1]).toMatchObject({ dispatchKind: "agent", cfg: { secret: "the host's" }, abortSignal: signal });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { text: "taken over" } }]);
    expect(reported).toEqual(["completed taken", "idle over"]);
  });

  it("should give queuedFinal and counts back to the caller verbatim", async () => {
    const { hooks } = await gateway({ on: { p: (api) => api.on("reply_dispatch", () => HANDLED) } });
    expect(await turnOf(hooks.runs).turn.takeover()).toEqual({
      end: "handled",
      by: "p",
      dispatchId: expect.any(String),
      queuedFinal: true,
      counts: HANDLED.counts,
    });
  });

  it.each<[string, object]>([
    ["says neither", { handled: true }],
    ["cannot be read", Object.defineProperty({ handled: true }, "queuedFinal", { get: never })],
  ])("should tell what the dispatcher counts where a handled result %s", async (_, result) => {
    const { hooks } = await gateway({
      on: {
        p: (api) =>
          api.on("reply_dispatch", (__, { dispatcher }) => {
            dispatcher.sendFinalReply({ text: "mine" });
            return result as typeof HANDLED;
          }),
      },
    });
    expect(await turnOf(hooks.runs).turn.takeover()).toMatchObject({
      end: "handled",
      queuedFinal: true,
      counts: { tool: 0, block: 0, final: 1 },
    });
  });

  it("should not let a takeover vouch for local media in the host's name", async () => {
    const media = { mediaUrl: "/etc/passwd", trustedLocalMedia: true };
    const { hooks } = await gateway({
      on: {
        p: (api) =>
          api.on("reply_dispatch", (_, { dispatcher }) => {
            dispatcher.sendToolResult(media);
            dispatcher.sendBlockReply(media);
            dispatcher.sendFinalReply(media);
            return HANDLED;
          }),
      },
    });
    const { turn, dispatcher } = turnOf(hooks.runs);
    await turn.takeover();
    expect(dispatcher.admitted.map(({ kind, payload }) => [kind, payload])).toEqual(
      ["tool", "block", "final"].map((kind) => [kind, { mediaUrl: "/etc/passwd" }]),
    );
  });

  it("should be a claim: who declines is passed over, and nobody after the claimer is called", async () => {
    const { hooks } = await gateway({
      on: {
        a: (api) => api.on("reply_dispatch", () => ({ handled: false, queuedFinal: true, counts: HANDLED.counts })),
        b: (api) => api.on("reply_dispatch", () => HANDLED),
        c: (api) => api.on("reply_dispatch", never),
      },
    });
    expect(await turnOf(hooks.runs).turn.takeover()).toMatchObject({ end: "handled", by: "b" });
  });

  it("should leave the turn to the model where everybody declines, or fails in an agent dispatch", async () => {
    const { hooks, log } = await gateway({
      on: {
        a: (api) => api.on("reply_dispatch", () => null),
        b: (api) => api.on("reply_dispatch", () => Promise.reject(new Error("boom"))),
      },
    });
    const { turn, dispatcher } = turnOf(hooks.runs);
    expect(await turn.takeover()).toEqual({ end: "declined" });
    expect(dispatcher.admitted).toEqual([]);
    expect(log).toEqual([expect.stringContaining("handler b failed")]);
  });

  it("should be raced against the turn's abort signal", async () => {
    const aborting = new AbortController();
    const { opened, open } = gate();
    const { hooks } = await gateway({
      on: {
        p: (api) =>
          api.on("reply_dispatch", async () => {
            aborting.abort();
            await opened;
            return HANDLED;
          }),
      },
    });
    const { turn } = turnOf(hooks.runs, { target: ACP, signal: aborting.signal });
    expect(await turn.takeover()).toEqual({ end: "aborted" });
    open();
  });

  it("should leave dispatcher, configuration and functions out of the record", async () => {
    const { hooks, store } = await gateway({
      on: { p: (api) => api.on("reply_dispatch", (_, ctx) => ({ ...HANDLED, ...ctx, mine: [ctx.cfg] })) },
    });
    await turnOf(hooks.runs).turn.takeover();
    await hooks.close();
    const recorded: string[] = [];
    for await (const page of store.readStreams({ order: "oldest" })) {
      for (const { metadata } of page.flatMap(({ events }) => events)) {
        const { payloads = {} }: { payloads?: Record<string, string> } = JSON.parse(metadata);
        recorded.push(...Object.values(payloads).map((bytes) => Buffer.from(bytes, "base64").toString()));
      }
    }
    const document = recorded.find((text) => text.includes('"event"'));
    expect(JSON.parse(document ?? "")).toEqual({ context: { dispatchKind: "agent" }, event: EVENT });
    const result = recorded.find((text) => text.includes('"handled"'));
    expect(JSON.parse(result ?? "")).toEqual({ ...HANDLED, dispatchKind: "agent", mine: [null] });
  });
});

describe("eligibility by dispatch kind", () => {
  const acpOnly = { eligibleDispatchKinds: ["acp"] } as const;

  it("should have the host classify the target and pass it as ctx.dispatchKind", async () => {
    const kinds: unknown[] = [];
    const { hooks } = await gateway({
      on: { p: (api) => api.on("reply_dispatch", (_, { dispatchKind }) => void kinds.push(dispatchKind)) },
    });
    for (const target of [ACP, AGENT, { ...AGENT, binding: { kind: "acp" as const } }, null]) {
      await turnOf(hooks.runs, { target }).turn.takeover();
    }
    expect(kinds).toEqual(["acp", "agent", "acp", undefined]);
  });

  it("should let an ACP-only dispatcher run for ACP targets alone", async () => {
    const { hooks } = await gateway({ on: { p: (api) => api.on("reply_dispatch", () => HANDLED, acpOnly) } });
    const end = async (target: typeof ACP) => (await turnOf(hooks.runs, { target }).turn.takeover()).end;
    expect([await end(ACP), await end(AGENT)]).toEqual(["handled", "declined"]);
  });

  it("should keep a restricted hook eligible where the dispatch context is missing", async () => {
    const { hooks } = await gateway({ on: { p: (api) => api.on("reply_dispatch", () => HANDLED, acpOnly) } });
    expect(await turnOf(hooks.runs, { target: null }).turn.takeover()).toMatchObject({ end: "handled" });
  });
});

describe("a tail dispatch", () => {
  it("should be a second run in the turn, flagged isTailDispatch", async () => {
    const tails: unknown[] = [];
    const { hooks, recordedPoints } = await gateway({
      on: { p: (api) => api.on("reply_dispatch", ({ isTailDispatch }) => void tails.push(isTailDispatch)) },
    });
    const { turn } = turnOf(hooks.runs);
    expect(await turn.takeover()).toEqual({ end: "declined" });
    expect(await turn.tail()).toEqual({ end: "declined" });
    expect(tails).toEqual([undefined, true]);
    expect(await recordedPoints()).toEqual(["reply_dispatch", "reply_dispatch"]);
  });

  it("should, like the first one, not be run again, whoever asks", async () => {
    let runs = 0;
    const { hooks } = await gateway({
      on: {
        p: (api) =>
          api.on("reply_dispatch", async () => {
            runs++;
            return HANDLED;
          }),
      },
    });
    const { turn } = turnOf(hooks.runs);
    const ends = await Promise.all([turn.takeover(), turn.takeover(), turn.tail(), turn.tail()]);
    expect(ends.map(({ end }) => end)).toEqual(["handled", "handled", "handled", "handled"]);
    expect(runs).toBe(2);
  });
});

describe("a restricted session", () => {
  it("should be told to the takeover: allowed tools, delivery and send policy", async () => {
    const seen: ReplyDispatchEvent[] = [];
    const restricted = {
      toolsAllow: ["read_file"],
      suppressUserDelivery: true,
      suppressReplyLifecycle: true,
      sourceReplyDeliveryMode: "message_tool_only",
      sendPolicy: "deny",
    } as const;
    const { hooks } = await gateway({ on: { p: (api) => api.on("reply_dispatch", (event) => void seen.push(event)) } });
    await turnOf(hooks.runs, { event: restricted }).turn.takeover();
    expect(seen).toEqual([{ ...EVENT, ...restricted }]);
  });

  it.each([{ sendPolicy: "deny" as const }, { suppressUserDelivery: true }])(
    "should have nothing delivered to its user, whatever the takeover hands to the dispatcher: %o",
    async (event) => {
      const admitted: unknown[] = [];
      const { hooks } = await gateway({
        on: {
          p: (api) =>
            api.on("reply_dispatch", async (_, { dispatcher }) => {
              admitted.push(dispatcher.sendToolResult({ text: "a" }), dispatcher.sendBlockReply({ text: "b" }));
              admitted.push(dispatcher.sendFinalReply({ text: "c" }), dispatcher.getQueuedCounts());
              const { anyVisibleDelivered } = await dispatcher.waitForIdle();
              return { handled: true, queuedFinal: anyVisibleDelivered, counts: dispatcher.getQueuedCounts() };
            }),
        },
      });
      const { turn, dispatcher } = turnOf(hooks.runs, { event });
      expect(await turn.takeover()).toMatchObject({ end: "handled", queuedFinal: false, counts: NOBODYS });
      expect(admitted).toEqual([false, false, false, NOBODYS]);
      expect(dispatcher.admitted).toEqual([]);
    },
  );
});

describe("an ACP reply_dispatch failure", () => {
  const rejecting = (api: PluginApi) => api.on("reply_dispatch", () => Promise.reject(new Error("backend gone")));

  it("should never fall back to the model: one error notice, and the turn is handled", async () => {
    const { hooks } = await gateway({ on: { p: rejecting, q: rejecting } });
    const { turn, dispatcher } = turnOf(hooks.runs, { target: ACP, failureNotice: "sorry" });
    expect(await turn.takeover()).toEqual({
      end: "failed",
      dispatchId: expect.any(String),
      failures: [
        expect.objectContaining({ subscriber: "p", message: "backend gone" }),
        expect.objectContaining({ subscriber: "q" }),
      ],
      queuedFinal: true,
      counts: { tool: 0, block: 0, final: 1 },
    });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { text: "sorry", isError: true } }]);
  });

  it("should be the same for a handler that is too late", async () => {
    const { opened, open } = gate();
    const { hooks } = await gateway({
      hooks: { timeouts: { reply_dispatch: 1 } },
      on: { p: (api) => api.on("reply_dispatch", () => opened.then(() => HANDLED)) },
    });
    const { turn, dispatcher } = turnOf(hooks.runs, { target: ACP });
    expect(await turn.takeover()).toMatchObject({ end: "failed", failures: [{ category: "TIMEOUT" }] });
    expect(dispatcher.admitted).toHaveLength(1);
    open();
  });

  it("should give no notice where a final is queued already", async () => {
    const { hooks } = await gateway({
      on: {
        p: (api) =>
          api.on("reply_dispatch", (_, { dispatcher }) => {
            dispatcher.sendFinalReply({ text: "already answered" });
            throw new Error("and then it broke");
          }),
      },
    });
    const { turn, dispatcher } = turnOf(hooks.runs, { target: ACP });
    expect(await turn.takeover()).toMatchObject({ end: "failed", queuedFinal: true });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { text: "already answered" } }]);
  });

  it("should give its notice where only a block or a tool result is queued", async () => {
    const { hooks } = await gateway({
      on: {
        p: (api) =>
          api.on("reply_dispatch", (_, { dispatcher }) => {
            dispatcher.sendBlockReply({ text: "so far" });
            throw new Error("and then it broke");
          }),
      },
    });
    const { turn, dispatcher } = turnOf(hooks.runs, { target: ACP });
    expect(await turn.takeover()).toMatchObject({ end: "failed", counts: { tool: 0, block: 1, final: 1 } });
    expect(dispatcher.admitted.map(({ kind }) => kind)).toEqual(["block", "final"]);
  });

  it.each([{ sendPolicy: "deny" as const }, { suppressUserDelivery: true }])(
    "should give no notice where delivery is suppressed: %o",
    async (event) => {
      const { hooks } = await gateway({ on: { p: rejecting } });
      const { turn, dispatcher } = turnOf(hooks.runs, { target: ACP, event });
      expect(await turn.takeover()).toMatchObject({ end: "failed", queuedFinal: false, counts: NOBODYS });
      expect(dispatcher.admitted).toEqual([]);
    },
  );

  it("should be the same in the tail, with one notice for both", async () => {
    const { hooks } = await gateway({ on: { p: rejecting } });
    const { turn, dispatcher } = turnOf(hooks.runs, { target: ACP });
    expect([await turn.takeover(), await turn.tail()]).toMatchObject([{ end: "failed" }, { end: "failed" }]);
    expect(dispatcher.admitted).toHaveLength(1);
  });

  it("should be no failure of the turn when another handler takes it", async () => {
    const { hooks } = await gateway({ on: { p: rejecting, q: (api) => api.on("reply_dispatch", () => HANDLED) } });
    const { turn, dispatcher } = turnOf(hooks.runs, { target: ACP });
    expect(await turn.takeover()).toMatchObject({ end: "handled", by: "q" });
    expect(dispatcher.admitted).toEqual([]);
  });

  it("should be a failure only where somebody failed: an ACP turn that all decline is declined", async () => {
    const { hooks } = await gateway({ on: { p: (api) => api.on("reply_dispatch", () => null) } });
    expect(await turnOf(hooks.runs, { target: ACP }).turn.takeover()).toEqual({ end: "declined" });
  });
});
