import { describe, expect, it } from "vitest";
import type { ReplyTurnOptions } from "#src/messages/agent/reply-turn.js";
import { ACP_ONLY, type AcpTurn, createAcpReplyDispatch } from "#src/messages/turn/acp.js";
import { assistantPreparer } from "#src/messages/turn/assistant.js";
import { TurnLife } from "#src/messages/turn/life.js";
import { UserTurnRecorder } from "#src/messages/turn/user-turn.js";
import { ACP, AGENT, EVENT, turnOf } from "../agent/turn.js";
import { gateway, NotingDispatcher } from "../inbound/gateway.js";
import { MESSAGE, RECEIPT, TARGET } from "./transcripts.js";

type Options = Parameters<typeof createAcpReplyDispatch>[0];

async function acp(options: Options, more: Partial<Omit<ReplyTurnOptions, "event">> = {}) {
  const told: string[] = [];
  const { hooks, store } = await gateway({
    on: { acp: (api) => api.on("reply_dispatch", createAcpReplyDispatch(options), ACP_ONLY) },
  });
  const dispatcher = new NotingDispatcher();
  const context = {
    cfg: {},
    dispatcher,
    recordProcessed: (outcome: string, { error = "" } = {}) => void told.push(`${outcome}${error}`),
    markIdle: () => void told.push("idle"),
    onPreparedAgentRunStart: () => "reply-dispatch",
    userTurnTranscriptRecorder: new UserTurnRecorder({
      transcripts: { append: async () => RECEIPT },
      target: TARGET,
      message: MESSAGE,
      idempotencyKey: "u-1",
    }),
    prepareAssistantTranscriptMessage: assistantPreparer({ life: new TurnLife(), runId: "r-1" }),
  };
  const ingress = {
    acknowledge: () => void told.push("acknowledged"),
    giveBack: () => void told.push("given back"),
  };
  const { turn } = turnOf(hooks.runs, { target: ACP, context, ingress, ...more });
  return { turn, told, dispatcher, context, hooks, store };
}

describe("createAcpReplyDispatch", () => {
  it("should forward run start, recorder, preparer and the adoption handle, the same ones, to its runtime", async () => {
    const seen: AcpTurn[] = [];
    const { turn, context } = await acp({ submit: (given) => void seen.push(given) });
    await turn.takeover();
    const [given] = seen;
    expect(given?.userTurnTranscriptRecorder).toBe(context.userTurnTranscriptRecorder);
    expect(given?.prepareAssistantTranscriptMessage).toBe(context.prepareAssistantTranscriptMessage);
    expect(given?.onPreparedAgentRunStart?.({ runId: "r-1", transcriptStart: null })).toBe("reply-dispatch");
    expect(given?.turnAdoption).toMatchObject({ adopt: expect.any(Function), assertCurrent: expect.any(Function) });
  });

  it("should adopt the input right before it is submitted, and behind everything that may wait", async () => {
    const order: string[] = [];
    const { turn, told, context } = await acp({ submit: () => void order.push(...told, "submitted") });
    Object.assign(context, { onReplyStart: async () => void order.push(...told, "started") });
    await turn.takeover();
    expect(order).toEqual(["started", "acknowledged", "submitted"]);
  });

  it("should forward them when the message context is rebuilt, too", async () => {
    const seen: AcpTurn[] = [];
    const { turn } = await acp({
      rebuild: (given) => {
        seen.push(given);
        return { channelId: "rebuilt" };
      },
      submit: (given) => void seen.push(given),
    });
    await turn.takeover();
    const [before, after] = seen;
    expect([before?.event.ctx.channelId, after?.event.ctx.channelId]).toEqual(["telegram", "rebuilt"]);
    const custodyOf = ({ event: _, ...custody }: AcpTurn) => custody;
    expect(before && custodyOf(before)).toEqual(after && custodyOf(after));
    expect(after?.turnAdoption).toBe(before?.turnAdoption);
    expect(Object.keys(after ?? {})).toEqual(expect.arrayContaining(["turnAdoption", "onPreparedAgentRunStart"]));
  });

  it("should adopt the input immediately before the backend gets it", async () => {
    const order: string[] = [];
    const { turn, told } = await acp(
      {
        rebuild: ({ event }) => {
          order.push("rebuilt");
          return event.ctx;
        },
        submit: () => void order.push("submitted"),
      },
      { ingress: { acknowledge: () => void order.push("acknowledged") } },
    );
    await turn.takeover();
    expect(order).toEqual(["rebuilt", "acknowledged", "submitted"]);
    expect(told).toEqual(["completed", "idle"]);
  });

  it("should report queuedFinal and counts of what the runtime handed over", async () => {
    const { turn } = await acp({
      submit: ({ dispatcher }) => {
        dispatcher.sendBlockReply({ text: "a" });
        dispatcher.sendFinalReply({ text: "b" });
      },
    });
    expect(await turn.takeover()).toMatchObject({
      end: "handled",
      by: "acp",
      queuedFinal: true,
      counts: { tool: 0, block: 1, final: 1 },
    });
  });

  it("should submit nothing where adoption fails, and leave the input retryable", async () => {
    const told: string[] = [];
    const { turn } = await acp(
      { submit: () => expect.fail("it must not be submitted") },
      { ingress: { acknowledge: () => Promise.reject(new Error("no")), giveBack: () => void told.push("given back") } },
    );
    await expect(turn.takeover()).rejects.toMatchObject({ code: "HL_ADOPTION" });
    expect(told).toEqual(["given back"]);
  });

  it("should fail the turn with one notice where the backend does, and not give it to the model", async () => {
    const { turn, told, dispatcher } = await acp({ submit: () => Promise.reject(new Error("the backend died")) });
    expect(await turn.takeover()).toMatchObject({ end: "failed", queuedFinal: true });
    expect(dispatcher.admitted).toMatchObject([{ kind: "final", payload: { isError: true } }]);
    expect(told).toEqual(["acknowledged", "errorthe backend died", "idle"]);
  });

  it("should leave agent dispatches alone", async () => {
    const { turn, told } = await acp({ submit: () => expect.fail("it is no ACP turn") }, { target: AGENT });
    expect(await turn.takeover()).toEqual({ end: "declined" });
    expect(told).toEqual([]);
  });

  it("should keep all of them in process: none is part of a record", async () => {
    const { turn, hooks, store } = await acp({ submit: () => {} });
    await turn.takeover();
    await hooks.close();
    const recorded: string[] = [];
    for await (const page of store.readStreams({ order: "oldest" })) {
      for (const { metadata } of page.flatMap(({ events }) => events)) {
        const { payloads = {} }: { payloads?: Record<string, string> } = JSON.parse(metadata);
        recorded.push(...Object.values(payloads).map((bytes) => Buffer.from(bytes, "base64").toString()));
      }
    }
    const [document] = recorded.filter((text) => text.includes('"event"')).map((text) => JSON.parse(text));
    expect(document).toEqual({ context: { dispatchKind: "acp" }, event: EVENT });
  });

  it("should work for callers of old that give it no handles", async () => {
    const seen: AcpTurn[] = [];
    const { hooks } = await gateway({
      on: {
        acp: (api) =>
          api.on("reply_dispatch", createAcpReplyDispatch({ submit: (given) => void seen.push(given) }), ACP_ONLY),
      },
    });
    expect(await turnOf(hooks.runs, { target: ACP }).turn.takeover()).toMatchObject({ end: "handled" });
    expect(Object.keys(seen[0] ?? {}).toSorted()).toEqual(["cfg", "dispatcher", "event"]);
  });
});
