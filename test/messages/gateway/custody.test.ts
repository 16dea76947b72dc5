/** Who has the input of a gateway's turn, whose completion it is, and what its transcript keeps. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { AgentTurn } from "#src/messages/gateway/options.js";
import type { PluginApi } from "#src/messages/plugin.js";
import { createAcpReplyDispatch } from "#src/messages/turn/acp.js";
import type { ChatCompletion, RuntimeEvent } from "#src/messages/turn/completion.js";
import { SqliteTranscripts } from "#src/messages/turn/sqlite-transcripts.js";
import type { TranscriptMessage } from "#src/messages/turn/transcript.js";
import type { ReplyDispatchContext } from "#src/messages/types.js";
import { hang, scene } from "./scene.js";

const HANDLED = { handled: true, queuedFinal: false, counts: { tool: 0, block: 0, final: 0 } };

/** A takeover that adopts, and then does `work`. */
function adopting(work: (ctx: ReplyDispatchContext) => unknown = () => {}) {
  return (api: PluginApi) =>
    void api.on("reply_dispatch", async (_, ctx) => {
      await ctx.turnAdoption?.adopt();
      ctx.turnAdoption?.assertCurrent();
      await work(ctx);
      return HANDLED;
    });
}

describe("a takeover's adoption of the input", () => {
  it("should be acknowledged by the host once, however often it is asked for", async () => {
    const acknowledged: unknown[] = [];
    const { receive } = await scene({
      on: { backend: adopting((ctx) => Promise.all([ctx.turnAdoption?.adopt(), ctx.turnAdoption?.adopt()])) },
      acknowledge: ({ messageId }) => void acknowledged.push(messageId),
    });
    expect(await receive()).toMatchObject({ end: "claimed", hook: "reply_dispatch" });
    expect(acknowledged).toEqual(["m-1"]);
  });

  it("should leave the message to come again where the host does not acknowledge it, whatever the handler says", async () => {
    let acknowledges = false;
    const { receive, gateway } = await scene({
      acknowledge: () => {
        if (!acknowledges) throw new Error("the claim on it is lost");
      },
      on: {
        swallowing: (api) =>
          void api.on("reply_dispatch", async (_, { turnAdoption }) => {
            await turnAdoption?.adopt().catch(() => {});
            return HANDLED;
          }),
      },
    });
    const failed = { end: "failed", at: "takeover", retryable: true, error: expect.stringContaining("is lost") };
    expect(await receive()).toMatchObject(failed);
    expect(await receive()).toMatchObject(failed);
    acknowledges = true;
    expect(await receive()).toMatchObject({ end: "claimed" });
    await gateway.close();
  });

  it("should keep the message from coming again where the turn is aborted after it", async () => {
    const abort = new AbortController();
    const { receive } = await scene({
      on: {
        backend: adopting(() => {
          abort.abort();
          return hang();
        }),
      },
    });
    expect(await receive({}, abort.signal)).toMatchObject({ end: "aborted", retryable: false });
    expect(await receive()).toMatchObject({ end: "duplicate" });
  });

  it("should not be taken where the turn is aborted before it", async () => {
    const abort = new AbortController();
    const { receive, gateway } = await scene({
      on: {
        backend: (api) =>
          void api.on("reply_dispatch", async (_, { turnAdoption }) => {
            abort.abort();
            await turnAdoption?.adopt();
            return HANDLED;
          }),
      },
    });
    expect(await receive({}, abort.signal)).toMatchObject({ retryable: true });
    gateway.plugins.unload("backend");
    expect(await receive()).toMatchObject({ end: "answered" });
  });
});

describe("the limit on how long nobody begins", () => {
  it.each(["reply_dispatch", "before_agent_reply"] as const)(
    "should give the message back where %s hangs",
    async (hook) => {
      const { receive, gateway } = await scene({
        startTimeoutMs: 30,
        on: { hanging: (api) => void api.on(hook, () => hang()) },
      });
      expect(await receive()).toMatchObject({ end: "failed", at: "takeover", retryable: true });
      gateway.plugins.unload("hanging");
      expect(await receive()).toMatchObject({ end: "answered" });
    },
  );

  it("should not be over who has adopted the input, or begun a run", async () => {
    const longer = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));
    const { receive, gateway } = await scene({
      startTimeoutMs: 30,
      on: { backend: adopting(longer) },
      agent: longer,
    });
    expect(await receive()).toMatchObject({ end: "claimed" });
    gateway.plugins.unload("backend");
    expect(await receive({ messageId: "m-2" })).toMatchObject({ end: "answered" });
  });
});

describe("the chat's completion", () => {
  type Event = RuntimeEvent | ChatCompletion;

  /** A runtime that offers its completion, or keeps it, and has an event stream of its own. */
  function runtime({ runId, emit, onPreparedAgentRunStart }: AgentTurn, offers: boolean): void {
    const options = offers
      ? ({ completionSource: "reply-dispatch", getResult: () => ({ terminalOutcome: "done" }) } as const)
      : undefined;
    onPreparedAgentRunStart({ runId, transcriptStart: null, ...(options === undefined ? {} : { options }) });
    emit({ type: "lifecycle", runId, phase: "end" });
    emit({ type: "completion", runId, text: "as the model said it" });
  }

  it("should be one, of what was delivered after the hooks, where the runtime leaves it to the host", async () => {
    const events: Event[] = [];
    const { receive } = await scene({
      onChatEvent: (event) => void events.push(event),
      on: { loud: (api) => void api.on("message_sending", ({ content }) => ({ content: content.toUpperCase() })) },
      agent: (turn) => {
        runtime(turn, true);
        return { text: "well" };
      },
    });
    const { completion, runId } = await receive();
    expect(events).toEqual([
      { type: "lifecycle", runId, phase: "end" },
      {
        type: "completion",
        source: "reply-dispatch",
        runId,
        replies: [{ kind: "final", payload: { text: "WELL" } }],
        terminalOutcome: "done",
      },
    ]);
    expect(completion?.chat).toEqual(events[1]);
  });

  it("should be the runtime's own where it keeps it", async () => {
    const events: Event[] = [];
    const { receive } = await scene({
      onChatEvent: (event) => void events.push(event),
      agent: (turn) => runtime(turn, false),
    });
    const { completion, runId } = await receive();
    expect(events).toEqual([
      { type: "lifecycle", runId, phase: "end" },
      { type: "completion", runId, text: "as the model said it" },
    ]);
    expect(completion?.chat).toBeNull();
  });

  it("should be the host's for a takeover, too, which is given all handles and forwards them", async () => {
    const events: Event[] = [];
    const given: string[] = [];
    const { receive } = await scene({
      onChatEvent: (event) => void events.push(event),
      transcripts: transcripts(),
      plan: () => ({ target: { sessionKey: "acp:1" } }),
      on: {
        acp: (api) =>
          void api.on(
            "reply_dispatch",
            createAcpReplyDispatch({
              submit: (turn) => {
                given.push(...Object.keys(turn));
                const getResult = () => ({ terminalOutcome: "acp" });
                const options = { completionSource: "reply-dispatch", getResult } as const;
                turn.onPreparedAgentRunStart?.({ runId: "backend-1", options, transcriptStart: null });
                turn.dispatcher.sendFinalReply({ text: "from the backend" });
              },
            }),
          ),
      },
    });
    expect(await receive()).toMatchObject({ end: "claimed", by: "acp" });
    expect(events).toMatchObject([{ type: "completion", runId: "backend-1", terminalOutcome: "acp" }]);
    expect(given).toEqual(
      expect.arrayContaining(["turnAdoption", "userTurnTranscriptRecorder", "prepareAssistantTranscriptMessage"]),
    );
  });
});

function transcripts(): SqliteTranscripts {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-gateway-"));
  const opened = SqliteTranscripts.open(join(folder, "transcripts.db"));
  onTestFinished(() => {
    opened.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return opened;
}

const SESSION = { agentId: "main", sessionId: "s-1", sessionKey: "s-1" };

function read(file: SqliteTranscripts): readonly (readonly [string, unknown])[] {
  return file.read(file.start(SESSION)).map(({ role, content }: TranscriptMessage) => [role, content]);
}

describe("the transcript of a turn", () => {
  const inSession = { sessionKey: "s-1" };

  it("should have what was asked and what was delivered, each once, the same input twice or not", async () => {
    const file = transcripts();
    const { receive } = await scene({
      transcripts: file,
      on: { loud: (api) => void api.on("message_sending", ({ content }) => ({ content: content.toUpperCase() })) },
    });
    await receive(inSession);
    await receive(inSession);
    await receive({ ...inSession, messageId: "m-2", body: "and?" });
    expect(read(file)).toEqual([
      ["user", "hello"],
      ["assistant", [{ text: "YOU SAID: HELLO" }]],
      ["user", "and?"],
      ["assistant", [{ text: "YOU SAID: AND?" }]],
    ]);
  });

  it("should have nothing twice where the runtime has written it, and says so by recorder and receipt", async () => {
    const file = transcripts();
    const { receive } = await scene({
      transcripts: file,
      agent: async ({ runId, transcript, onPreparedAgentRunStart }) => {
        if (transcript === null) throw new Error("there is a transcript");
        await transcript.userTurnTranscriptRecorder.persist();
        const message = transcript.prepareAssistantTranscriptMessage(
          { id: "a-1", role: "assistant", content: "raw" },
          "as it was said",
        );
        const receipt = await file.append(transcript.start, message, "runtime-1");
        onPreparedAgentRunStart({
          runId,
          transcriptStart: transcript.start,
          options: { completionSource: "reply-dispatch", getResult: () => ({ assistantTranscript: receipt }) },
        });
        return { text: "as it was said" };
      },
    });
    const { runId } = await receive(inSession);
    expect(file.read(file.start(SESSION))).toMatchObject([
      { role: "user", content: "hello" },
      { role: "assistant", id: "a-1", content: "raw", display: { owner: "reply-dispatch", runId } },
    ]);
  });

  it("should be the runtime's where the completion is", async () => {
    const file = transcripts();
    const { receive } = await scene({
      transcripts: file,
      agent: ({ runId, transcript, onPreparedAgentRunStart }) => {
        onPreparedAgentRunStart({ runId, transcriptStart: transcript?.start ?? null });
        return { text: "well" };
      },
    });
    await receive(inSession);
    expect(read(file)).toEqual([["user", "hello"]]);
  });

  it("should not be written to where the session was replaced meanwhile, and the user is answered all the same", async () => {
    const file = transcripts();
    const { receive, channel, log } = await scene({
      transcripts: file,
      agent: () => {
        file.replace({ ...SESSION, sessionId: "s-2" });
        return { text: "well" };
      },
    });
    await receive(inSession);
    expect(channel.texts).toEqual(["well"]);
    expect(file.read(file.start({ ...SESSION, sessionId: "s-2" }))).toEqual([]);
    expect(log.join()).toContain("is not the one under its key any more");
  });

  it("should keep nobody from an answer where it cannot be had", async () => {
    const file = transcripts();
    const { receive, log } = await scene({ transcripts: file });
    file.close();
    expect(await receive(inSession)).toMatchObject({ end: "answered", completion: { delivered: [{}] } });
    expect(log.join()).toContain("is closed");
  });

  it("should have nothing of a turn that may come again, and nothing of what no agent was to see", async () => {
    const file = transcripts();
    const abort = new AbortController();
    const { receive } = await scene({
      transcripts: file,
      agent: () => void abort.abort(),
      on: {
        claimer: (api) =>
          void api.on("before_dispatch", ({ content }) =>
            content === "/ping" ? { handled: true, text: "pong" } : null,
          ),
      },
    });
    await receive(inSession, abort.signal);
    await receive({ ...inSession, messageId: "m-2", body: "/ping" });
    expect(read(file)).toEqual([]);
  });
});
