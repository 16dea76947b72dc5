import { describe, expect, it, onTestFinished } from "vitest";
import type { Takeover } from "#src/messages/agent/reply-turn.js";
import { InboundDedupe } from "#src/messages/inbound/dedupe.js";
import type { PluginApi } from "#src/messages/plugin.js";
import { type Ingress, isInputRetryable, type TurnAdoption } from "#src/messages/turn/adoption.js";
import { turnCustodyOf } from "#src/messages/turn/forwarded.js";
import { StartupWatchdog } from "#src/messages/turn/watchdog.js";
import { settled, VirtualClock } from "../../support/virtual-clock.js";
import { ACP, turnOf } from "../agent/turn.js";
import { gate, gateway, never } from "../inbound/gateway.js";

const HANDLED = { handled: true, queuedFinal: false, counts: { tool: 0, block: 0, final: 0 } };

/** An input whose host notes what it is told. */
function input(over: Partial<Ingress> = {}) {
  const told: string[] = [];
  const ingress: Ingress = {
    acknowledge: () => void told.push("acknowledged"),
    giveBack: () => void told.push("given back"),
    ...over,
  };
  return { ingress, told };
}

type Takes = (handle: TurnAdoption, api: { abortSignal: AbortSignal | undefined }) => unknown;

/** A turn whose first plugin is asked with its handle; a second one must not be asked. */
async function taking(
  take: Takes,
  { ingress, target, signal }: { ingress: Ingress; target?: typeof ACP; signal?: AbortSignal },
  second: (api: PluginApi) => void = (api) => api.on("reply_dispatch", never),
) {
  const { hooks, store } = await gateway({
    on: {
      a: (api) =>
        api.on("reply_dispatch", async (_, { turnAdoption, abortSignal }) => {
          if (turnAdoption === undefined) throw new Error("there is no handle");
          await take(turnAdoption, { abortSignal });
          return HANDLED;
        }),
      b: second,
    },
  });
  const options = {
    ingress,
    ...(target === undefined ? {} : { target }),
    ...(signal === undefined ? {} : { signal }),
  };
  return { hooks, store, ...turnOf(hooks.runs, options) };
}

const rejectionOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => expect.fail(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );

describe("adopt", () => {
  it("should transfer custody: acknowledge the input once, however often and by whomever it is called", async () => {
    const { ingress, told } = input();
    const { turn } = await taking(
      async (handle) => {
        await Promise.all([handle.adopt(), handle.adopt()]);
        await handle.adopt();
      },
      { ingress },
    );
    expect(await turn.takeover()).toMatchObject({ end: "handled", by: "a" });
    expect(told).toEqual(["acknowledged"]);
  });

  it("should share one promise between concurrent and repeated calls", async () => {
    const promises: Promise<void>[] = [];
    const { ingress } = input();
    const { turn } = await taking(
      async (handle) => {
        promises.push(handle.adopt(), handle.adopt());
        await promises[0];
        promises.push(handle.adopt());
      },
      { ingress },
    );
    await turn.takeover();
    expect(new Set(promises).size).toBe(1);
  });

  it("should not resolve before the host has acknowledged", async () => {
    const { opened, open } = gate();
    const order: string[] = [];
    const { ingress } = input({ acknowledge: () => opened.then(() => void order.push("acknowledged")) });
    const { turn } = await taking((handle) => handle.adopt().then(() => void order.push("adopted")), { ingress });
    const takeover = turn.takeover();
    await settled();
    expect(order).toEqual([]);
    open();
    await takeover;
    expect(order).toEqual(["acknowledged", "adopted"]);
  });

  it("should stay rejected once it was", async () => {
    let attempts = 0;
    const errors: unknown[] = [];
    const { ingress } = input({
      acknowledge: () => {
        if (++attempts === 1) throw new Error("not now");
      },
    });
    const { turn } = await taking(
      async (handle) => {
        errors.push(await rejectionOf(handle.adopt()), await rejectionOf(handle.adopt()));
      },
      { ingress },
    );
    await rejectionOf(turn.takeover());
    await settled();
    expect(attempts).toBe(1);
    expect(errors[0]).toMatchObject({ code: "HL_ADOPTION", cause: new Error("not now") });
    expect(errors[1]).toBe(errors[0]);
  });

  it.each([
    ["the dispatch", "signal"],
    ["the ingress claim", "claim"],
  ] as const)("should check before the acknowledgement that %s was not aborted", async (_, which) => {
    const aborting = new AbortController();
    const { ingress, told } = input(which === "claim" ? { signal: aborting.signal } : {});
    const errors: unknown[] = [];
    const { turn } = await taking(
      async (handle) => {
        aborting.abort(new Error("gone"));
        errors.push(await rejectionOf(handle.adopt()));
      },
      { ingress, ...(which === "signal" ? { signal: aborting.signal } : {}) },
    );
    expect(await turn.takeover()).toEqual({ end: "aborted" });
    await settled();
    expect(errors).toEqual([expect.objectContaining({ code: "HL_ADOPTION" })]);
    expect(told).toEqual([]);
  });

  it.each([
    ["the dispatch", "signal"],
    ["the ingress claim", "claim"],
  ] as const)("should check after the acknowledgement that %s was not aborted", async (_, which) => {
    const aborting = new AbortController();
    const { opened, open } = gate();
    const { ingress, told } = input({
      acknowledge: () => opened,
      ...(which === "claim" ? { signal: aborting.signal } : {}),
    });
    const { turn } = await taking(
      async (handle) => {
        const adopting = handle.adopt();
        open();
        aborting.abort();
        await adopting;
      },
      { ingress, ...(which === "signal" ? { signal: aborting.signal } : {}) },
    );
    expect(await rejectionOf(turn.takeover())).toMatchObject({ code: "HL_ADOPTION" });
    expect(told).toEqual(["given back"]);
  });

  it("should check that the hook call is live: one that was not awaited fails with the call", async () => {
    const { opened, open } = gate();
    const { ingress, told } = input({ acknowledge: () => opened });
    const { turn } = await taking((handle) => void handle.adopt(), { ingress });
    expect(await rejectionOf(turn.takeover())).toMatchObject({
      code: "HL_ADOPTION",
      message: expect.stringContaining("the hook call is over"),
    });
    expect(told).toEqual(["given back"]);
    open();
  });

  it("should refuse a handler that has timed out, and leave the input to the next one's adoption", async () => {
    const clock = new VirtualClock();
    const { ingress, told } = input();
    const late = gate();
    const errors: unknown[] = [];
    const { hooks } = await gateway({
      clock,
      on: {
        a: (api) =>
          api.on(
            "reply_dispatch",
            async (_, { turnAdoption }) => {
              await late.opened;
              errors.push(await rejectionOf(turnAdoption?.adopt() ?? Promise.resolve()));
              return null;
            },
            { timeoutMs: 50 },
          ),
        b: (api) =>
          api.on("reply_dispatch", async (_, { turnAdoption }) => {
            late.open();
            await settled();
            await turnAdoption?.adopt();
            return HANDLED;
          }),
      },
    });
    const takeover = turnOf(hooks.runs, { ingress }).turn.takeover();
    await clock.run();
    expect(await takeover).toMatchObject({ end: "handled", by: "b" });
    expect(errors).toEqual([expect.objectContaining({ code: "HL_ADOPTION" })]);
    expect(told).toEqual(["acknowledged"]);
  });

  it("should not depend on the ingress any more once it has succeeded", async () => {
    const claim = new AbortController();
    const { ingress, told } = input({ signal: claim.signal });
    const { turn } = await taking(
      async (handle, { abortSignal }) => {
        await handle.adopt();
        claim.abort();
        handle.assertCurrent();
        expect(abortSignal?.aborted).toBe(false);
      },
      { ingress },
    );
    expect(await turn.takeover()).toMatchObject({ end: "handled" });
    expect(told).toEqual(["acknowledged"]);
  });
});

describe("a takeover that fails after it has adopted", () => {
  it("should not be followed by the model: its backend may have begun", async () => {
    const { ingress, told } = input();
    const { turn, dispatcher } = await taking(
      async (handle) => {
        await handle.adopt();
        throw new Error("the backend died");
      },
      { ingress },
      (api) => api.on("reply_dispatch", () => null),
    );
    expect(await turn.takeover()).toMatchObject({ end: "failed", queuedFinal: true });
    expect(dispatcher.admitted).toMatchObject([{ kind: "final", payload: { isError: true } }]);
    expect(told).toEqual(["acknowledged"]);
  });
});

describe("assertCurrent", () => {
  it("should throw after dispatch cleanup, and not before", async () => {
    const handles: TurnAdoption[] = [];
    const { ingress } = input();
    const { turn } = await taking(
      async (handle) => {
        handles.push(handle);
        handle.assertCurrent();
        await handle.adopt();
        handle.assertCurrent();
      },
      { ingress },
    );
    expect(await turn.takeover()).toMatchObject({ end: "handled" });
    expect(() => handles[0]?.assertCurrent()).toThrow(expect.objectContaining({ code: "HL_TURN_OVER" }));
  });

  it("should throw after a failed adoption, with its error", async () => {
    const seen: unknown[] = [];
    const { ingress } = input({ acknowledge: () => Promise.reject(new Error("no")) });
    const { turn } = await taking(
      async (handle) => {
        const error = await rejectionOf(handle.adopt());
        try {
          handle.assertCurrent();
        } catch (thrown) {
          seen.push(thrown === error);
        }
      },
      { ingress },
    );
    await rejectionOf(turn.takeover());
    expect(seen).toEqual([true]);
  });
});

describe("a failed adoption", () => {
  const failing = () => input({ acknowledge: () => Promise.reject(new Error("the queue is gone")) });

  it.each([
    ["is propagated", (handle: TurnAdoption) => handle.adopt()],
    ["is swallowed, and the handler returns handled", (handle: TurnAdoption) => handle.adopt().catch(() => {})],
  ])("should reject the whole dispatch where it %s, and never try the next handler", async (_, take) => {
    for (const target of [undefined, ACP]) {
      const { ingress, told } = failing();
      const { turn, dispatcher } = await taking(take, { ingress, ...(target === undefined ? {} : { target }) });
      const error = await rejectionOf(turn.takeover());
      expect(error).toMatchObject({ code: "HL_ADOPTION", message: expect.stringContaining("the queue is gone") });
      expect(isInputRetryable(error)).toBe(true);
      expect(told).toEqual(["given back"]);
      expect(dispatcher.admitted).toEqual([]);
    }
  });

  it("should leave the input retryable: the message may come again", async () => {
    const { hooks, receive, options } = await gateway({
      on: {
        a: (api) =>
          api.on("reply_dispatch", async (_, { turnAdoption }) => {
            await turnAdoption?.adopt();
            return HANDLED;
          }),
      },
    });
    expect(options.dedupe).toBeInstanceOf(InboundDedupe);
    let acknowledges = false;
    const once = async (): Promise<string> => {
      const received = await receive();
      if (received.end !== "dispatch") return received.end;
      const acknowledge = () => (acknowledges ? undefined : Promise.reject(new Error("no")));
      const { turn } = turnOf(hooks.runs, { ingress: { acknowledge, giveBack: received.giveBack } });
      return turn.takeover().then(
        ({ end }) => end,
        (error: unknown) => (isInputRetryable(error) ? "retryable" : "lost"),
      );
    };
    expect(await once()).toBe("retryable");
    acknowledges = true;
    expect([await once(), await once()]).toEqual(["handled", "duplicate"]);
  });

  it("should be recorded as an aborted run", async () => {
    const { ingress } = failing();
    const { turn, hooks, store } = await taking((handle) => handle.adopt(), { ingress });
    await rejectionOf(turn.takeover());
    await hooks.close();
    const types: string[] = [];
    for await (const page of store.readStreams({ order: "oldest" })) {
      types.push(...page.flatMap(({ events }) => events).map(({ type }) => type));
    }
    expect(types.filter((type) => /aborted/i.test(type))).toHaveLength(1);
  });
});

describe("the handle", () => {
  it("should be the same through adapters and rebuilt contexts", async () => {
    const { ingress, told } = input();
    const { hooks } = await gateway({
      on: {
        a: (api) =>
          api.on("reply_dispatch", async (_, ctx) => {
            const rebuilt = { channelId: "elsewhere", ...turnCustodyOf(ctx) };
            expect(rebuilt.turnAdoption).toBe(ctx.turnAdoption);
            await rebuilt.turnAdoption?.adopt();
            return HANDLED;
          }),
      },
    });
    expect(await turnOf(hooks.runs, { ingress }).turn.takeover()).toMatchObject({ end: "handled" });
    expect(told).toEqual(["acknowledged"]);
  });

  it("should be left out by older callers, and nothing else change", async () => {
    const seen: boolean[] = [];
    const { hooks } = await gateway({
      on: {
        a: (api) =>
          api.on("reply_dispatch", async (_, ctx) => {
            seen.push("turnAdoption" in ctx);
            await ctx.turnAdoption?.adopt();
            return HANDLED;
          }),
      },
    });
    expect(await turnOf(hooks.runs).turn.takeover()).toMatchObject({ end: "handled" });
    expect(seen).toEqual([false]);
  });

  it("should take one adoption for the takeover and the tail together", async () => {
    const { ingress, told } = input();
    const { hooks } = await gateway({
      on: {
        a: (api) =>
          api.on("reply_dispatch", async (_, { turnAdoption }) => {
            await turnAdoption?.adopt();
            return null;
          }),
      },
    });
    const { turn } = turnOf(hooks.runs, { ingress });
    const ends: Takeover["end"][] = [(await turn.takeover()).end, (await turn.tail()).end];
    expect(ends).toEqual(["declined", "declined"]);
    expect(told).toEqual(["acknowledged"]);
  });
});

describe("the ingress start-up watchdog", () => {
  const watched = () => {
    const clock = new VirtualClock();
    const watchdog = new StartupWatchdog({ timeoutMs: 1_000, clock });
    watchdog.start();
    onTestFinished(() => watchdog.stop());
    return { clock, watchdog };
  };

  it("should make the input retryable where it fires before adoption and before any start", async () => {
    const { clock, watchdog } = watched();
    const { ingress, told } = input({ watchdog });
    const { turn } = await taking(() => new Promise(() => {}), { ingress });
    const rejected = rejectionOf(turn.takeover());
    await clock.run();
    const error = await rejected;
    expect(error).toMatchObject({ code: "HL_TURN_STALLED" });
    expect(isInputRetryable(error)).toBe(true);
    expect(told).toEqual(["given back"]);
  });

  it("should fail an adoption that the host does not acknowledge in time", async () => {
    const { clock, watchdog } = watched();
    const { ingress, told } = input({ watchdog, acknowledge: () => new Promise(() => {}) });
    const { turn } = await taking((handle) => handle.adopt(), { ingress });
    const rejected = rejectionOf(turn.takeover());
    await clock.run();
    expect(await rejected).toMatchObject({ code: "HL_TURN_STALLED" });
    expect(told).toEqual(["given back"]);
  });

  it("should be stopped by adoption", async () => {
    const { clock, watchdog } = watched();
    const { opened, open } = gate();
    const { ingress, told } = input({ watchdog });
    const { turn } = await taking((handle) => handle.adopt().then(() => opened), { ingress });
    const takeover = turn.takeover();
    await clock.run();
    expect(watchdog.signal.aborted).toBe(false);
    open();
    expect(await takeover).toMatchObject({ end: "handled" });
    expect(told).toEqual(["acknowledged"]);
  });

  it.each(["onPreparedAgentRunStart", "onAgentRunStart"] as const)("should be stopped by %s", async (callback) => {
    const { clock, watchdog } = watched();
    const { opened, open } = gate();
    const { hooks } = await gateway({
      on: {
        a: (api) =>
          api.on("reply_dispatch", async (_, ctx) => {
            if (callback === "onAgentRunStart") ctx.onAgentRunStart?.("r-1");
            else ctx.onPreparedAgentRunStart?.({ runId: "r-1", transcriptStart: null });
            await opened;
            return HANDLED;
          }),
      },
    });
    const base = turnOf(hooks.runs).dispatcher;
    const { turn } = turnOf(hooks.runs, {
      ingress: input({ watchdog }).ingress,
      context: { cfg: {}, dispatcher: base, recordProcessed() {}, markIdle() {}, [callback]: () => undefined },
    });
    const takeover = turn.takeover();
    await clock.run();
    expect(watchdog.signal.aborted).toBe(false);
    open();
    expect(await takeover).toMatchObject({ end: "handled" });
  });

  it("should go on for a turn that was declined: it is the model's to begin on", async () => {
    const { clock, watchdog } = watched();
    const { hooks } = await gateway();
    expect(await turnOf(hooks.runs, { ingress: input({ watchdog }).ingress }).turn.takeover()).toEqual({
      end: "declined",
    });
    await clock.run();
    expect(watchdog.signal.reason).toMatchObject({ code: "HL_TURN_STALLED" });
  });

  it("should fire never once stopped, once only, and take no timeout that is none", async () => {
    const { clock, watchdog } = watched();
    watchdog.start();
    watchdog.stop();
    watchdog.start();
    await clock.run();
    expect(watchdog.signal.aborted).toBe(false);
    for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => new StartupWatchdog({ timeoutMs })).toThrow(RangeError);
    }
  });
});
