import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AgentReplies } from "#src/messages/agent/agent-replies.js";
import type { PluginApi } from "#src/messages/plugin.js";
import type { AgentContext, BeforeAgentReplyEvent, Trigger } from "#src/messages/types.js";
import { type Gateway, gate, gateway, NotingDispatcher, never } from "../inbound/gateway.js";
import { withRuns } from "../outbound/scene.js";

const EVENT: BeforeAgentReplyEvent = { cleanedBody: "hello" };
const CONTEXT: AgentContext = { runId: "r-1", agentId: "main", sessionKey: "s-1", trigger: "user" };

type Agent = Gateway & { readonly replies: AgentReplies };

async function agent(register: (api: PluginApi) => void, entries?: number): Promise<Agent> {
  const all = await gateway({ on: { p: register } });
  const { runs } = all.hooks;
  return { ...all, replies: new AgentReplies(entries === undefined ? { runs } : { runs, entries }) };
}

describe("before_agent_reply", () => {
  it("should see the cleaned body and the agent's context", async () => {
    const seen: unknown[] = [];
    const context: AgentContext = {
      ...CONTEXT,
      sessionId: "id",
      workspaceDir: "/w",
      modelProviderId: "mp",
      modelId: "m",
      channel: "telegram",
      chatId: "c",
      senderId: "u",
      inputProvenance: { from: "webhook" },
    };
    const { replies, dispatcher } = await agent((api) => {
      api.on("before_agent_reply", (event, ctx) => void seen.push(event, ctx));
    });
    expect(await replies.ask(EVENT, context, { dispatcher })).toEqual({ end: "declined" });
    expect(seen).toEqual([EVENT, context]);
  });

  it("should give a simple synthetic reply in the agent's place, as one final", async () => {
    const { replies, dispatcher } = await agent((api) => {
      api.on("before_agent_reply", () => ({ handled: true, reply: { text: "synthetic" }, reason: "cached" }));
      api.on("before_agent_reply", never);
    });
    expect(await replies.ask(EVENT, CONTEXT, { dispatcher })).toEqual({
      end: "handled",
      by: "p",
      dispatchId: expect.any(String),
      queuedFinal: true,
      reason: "cached",
    });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { text: "synthetic" } }]);
  });

  it("should deliver nothing when handled without reply", async () => {
    const { replies, dispatcher } = await agent((api) => api.on("before_agent_reply", () => ({ handled: true })));
    expect(await replies.ask(EVENT, CONTEXT, { dispatcher })).toMatchObject({ end: "handled", queuedFinal: false });
    expect(dispatcher.admitted).toEqual([]);
  });

  it("should not let a reply grant itself trust in local media", async () => {
    const { replies, dispatcher } = await agent((api) => {
      const reply = Object.assign({ mediaUrl: "/etc/passwd" }, { trustedLocalMedia: true });
      api.on("before_agent_reply", () => ({ handled: true, reply }));
    });
    await replies.ask(EVENT, CONTEXT, { dispatcher });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { mediaUrl: "/etc/passwd" } }]);
  });

  it("should fail open, and be raced against the turn's abort signal", async () => {
    const turn = new AbortController();
    const { opened, open } = gate();
    let asked = 0;
    const { replies, dispatcher } = await agent((api) => {
      api.on("before_agent_reply", async () => {
        if (++asked === 1) throw new Error("boom");
        turn.abort();
        await opened;
        return { handled: true, reply: { text: "late" } };
      });
    });
    expect(await replies.ask(EVENT, CONTEXT, { dispatcher })).toEqual({ end: "declined" });
    const { signal } = turn;
    expect(await replies.ask(EVENT, { ...CONTEXT, runId: "r-2" }, { dispatcher, signal })).toEqual({ end: "aborted" });
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(dispatcher.admitted).toEqual([]);
  });
});

describe("eligibility by trigger", () => {
  const asked = async (eligible: readonly Trigger[], trigger: unknown): Promise<boolean> => {
    const { replies, dispatcher } = await agent((api) => {
      api.on("before_agent_reply", () => ({ handled: true }), { eligibleTriggers: eligible });
    });
    const context = JSON.parse(JSON.stringify({ ...CONTEXT, trigger }));
    return (await replies.ask(EVENT, context, { dispatcher })).end === "handled";
  };

  it.each<Trigger>(["user", "cron", "heartbeat"])(
    "should ask a restricted handler for its trigger: %s",
    async (one) => {
      expect(await asked([one], one)).toBe(true);
      expect(await asked([one], one === "user" ? "cron" : "user")).toBe(false);
    },
  );

  it("should not ask a restricted handler where the trigger is missing or unknown", async () => {
    expect([await asked(["user"], undefined), await asked(["user"], "moon")]).toEqual([false, false]);
  });

  it("should ask a handler that is restricted to nothing always", async () => {
    expect([await asked([], undefined), await asked([], "heartbeat")]).toEqual([true, true]);
  });
});

describe("a run of the agent", () => {
  it("should be asked for once by its run id, also across model fallbacks", async () => {
    let asked = 0;
    const { replies, dispatcher, recordedPoints } = await agent((api) => {
      api.on("before_agent_reply", () => void asked++);
    });
    for (const modelId of ["big", "small", "smallest"]) {
      expect(await replies.ask(EVENT, { ...CONTEXT, modelId }, { dispatcher })).toEqual({ end: "declined" });
    }
    expect(asked).toBe(1);
    await replies.ask(EVENT, { ...CONTEXT, runId: "r-2" }, { dispatcher });
    expect(asked).toBe(2);
    expect(await recordedPoints()).toEqual(["before_agent_reply", "before_agent_reply"]);
  });

  it("should deliver a handled reply once, whoever asks again", async () => {
    const { replies, dispatcher } = await agent((api) => {
      api.on("before_agent_reply", () => ({ handled: true, reply: { text: "once" } }));
    });
    const other = new NotingDispatcher();
    const first = await replies.ask(EVENT, CONTEXT, { dispatcher });
    expect(await replies.ask(EVENT, CONTEXT, { dispatcher: other })).toEqual(first);
    expect([dispatcher.admitted.length, other.admitted.length]).toEqual([1, 0]);
  });

  it("should be asked for each time where it has no id", async () => {
    let asked = 0;
    const { replies, dispatcher } = await agent((api) => api.on("before_agent_reply", () => void asked++));
    const { runId: _, ...without } = CONTEXT;
    await replies.ask(EVENT, without, { dispatcher });
    await replies.ask(EVENT, { ...without, runId: "" }, { dispatcher });
    expect(asked).toBe(2);
  });

  it("should be remembered within bounds, the oldest forgotten first, and never one that is being asked for", async () => {
    const asked: unknown[] = [];
    const { opened, open } = gate();
    const { replies, dispatcher } = await agent((api) => {
      api.on("before_agent_reply", async (_, { runId }) => {
        asked.push(runId);
        if (runId === "slow") await opened;
        return null;
      });
    }, 2);
    const ask = (runId: string) => replies.ask(EVENT, { ...CONTEXT, runId }, { dispatcher });
    const slow = ask("slow");
    for (const runId of ["a", "b", "c", "b", "a"]) await ask(runId);
    const again = ask("slow");
    open();
    await Promise.all([slow, again]);
    expect(asked).toEqual(["slow", "a", "b", "c", "a"]);
  });

  it("should not be asked for again after a fault of ours", async () => {
    let asked = 0;
    const { hooks, dispatcher } = await gateway();
    const runs = withRuns(hooks.runs, {
      claim: () => {
        asked++;
        return Promise.reject(new Error("a bug"));
      },
    });
    const replies = new AgentReplies({ runs });
    await expect(replies.ask(EVENT, CONTEXT, { dispatcher })).rejects.toThrow("a bug");
    expect(await replies.ask(EVENT, CONTEXT, { dispatcher })).toEqual({ end: "declined" });
    expect(asked).toBe(1);
  });

  it("should be asked for once and answered alike, in whatever order attempts come and handlers answer", async () => {
    const attempt = fc.record({ runId: fc.constantFrom("a", "b", "c"), handled: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(attempt, { maxLength: 10 }), async (scheduler, attempts) => {
        const asked: string[] = [];
        const { replies, dispatcher } = await agent((api) => {
          api.on("before_agent_reply", async ({ cleanedBody }, { runId = "" }) => {
            asked.push(runId);
            await scheduler.schedule(Promise.resolve(), "answers");
            return { handled: cleanedBody === "take", reply: { text: runId } };
          });
        });
        const ends = await scheduler.waitFor(
          Promise.all(
            attempts.map(async ({ runId, handled }) => {
              await scheduler.schedule(Promise.resolve(), "attempts");
              const event = { cleanedBody: handled ? "take" : "leave" };
              return { runId, end: (await replies.ask(event, { ...CONTEXT, runId }, { dispatcher })).end };
            }),
          ),
        );
        const runIds = [...new Set(attempts.map(({ runId }) => runId))].toSorted();
        expect(asked.toSorted()).toEqual(runIds);
        const handled = runIds.filter((id) => ends.some(({ runId, end }) => runId === id && end === "handled"));
        expect(dispatcher.admitted.map(({ payload }) => payload.text).toSorted()).toEqual(handled);
        for (const id of runIds) {
          expect(new Set(ends.filter(({ runId }) => runId === id).map(({ end }) => end))).toHaveLength(1);
        }
      }),
      { numRuns: 100 },
    );
  });
});
