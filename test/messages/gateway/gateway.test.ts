import { describe, expect, it, onTestFinished } from "vitest";
import { createGateway } from "#src/messages/gateway/create.js";
import { gate, hang, MESSAGE, plugin, scene, TestChannel } from "./scene.js";

const COUNTS = { tool: 0, block: 0, final: 0 };

describe("a message at a gateway", () => {
  it("should pass the stages in order, and reach the agent", async () => {
    const asked: string[] = [];
    const { receive, channel, completions, gateway } = await scene({
      on: {
        witness(api) {
          api.on("message_received", () => void asked.push("message_received"));
          api.on("before_dispatch", () => void asked.push("before_dispatch"));
          api.on("reply_dispatch", ({ isTailDispatch = false }) => void asked.push(`reply_dispatch ${isTailDispatch}`));
          api.on("before_agent_reply", () => void asked.push("before_agent_reply"));
          api.on("reply_payload_sending", () => void asked.push("reply_payload_sending"));
          api.on("message_sending", () => void asked.push("message_sending"));
          api.on("message_sent", ({ success }) => void asked.push(`message_sent ${success}`));
        },
      },
      agent: ({ message }) => {
        asked.push("agent");
        return { text: `You said: ${message.body}` };
      },
    });
    expect(await receive()).toMatchObject({ end: "answered", retryable: false });
    await gateway.close();
    expect(channel.texts).toEqual(["You said: hello"]);
    expect(asked.filter((what) => !/_payload_|message_s/.test(what))).toEqual([
      "message_received",
      "before_dispatch",
      "reply_dispatch false",
      "before_agent_reply",
      "agent",
      "reply_dispatch true",
    ]);
    expect(asked.filter((what) => /_payload_|message_s/.test(what))).toEqual([
      "reply_payload_sending",
      "message_sending",
      "message_sent true",
    ]);
    expect(completions).toHaveLength(1);
  });

  it("should be told to the agent with its run, session, kind and signal, and with what the host plans for it", async () => {
    const told: object[] = [];
    const { receive } = await scene({
      plan: () => ({ target: { sessionKey: "agent:main:acp:x" } }),
      agent: ({ runId, sessionKey, dispatchKind, signal }) =>
        void told.push({ runId, sessionKey, dispatchKind, aborted: signal.aborted }),
    });
    const { runId } = await receive();
    expect(await receive({ messageId: "m-2", runId: "r-7", sessionKey: "s-7" })).toMatchObject({ runId: "r-7" });
    expect(told).toEqual([
      { runId, sessionKey: "agent:main:chat:default:c-1", dispatchKind: "acp", aborted: false },
      { runId: "r-7", sessionKey: "s-7", dispatchKind: "acp", aborted: false },
    ]);
  });

  it.each([
    ["before_dispatch", { handled: true, text: "taken" }, "taken"],
    ["before_agent_reply", { handled: true, reply: { text: "taken" } }, "taken"],
    ["before_agent_reply", { handled: true }, undefined],
  ] as const)("should not reach the agent where %s claims it", async (hook, result, text) => {
    const { receive, channel, completions } = await scene({
      on: { claimer: (api) => void api.on(hook, () => result) },
      agent: () => ({ text: "asked" }),
    });
    expect(await receive()).toMatchObject({ end: "claimed", hook, by: "claimer", dispatchId: expect.any(String) });
    expect(channel.texts).toEqual(text === undefined ? [] : [text]);
    expect(completions.map(({ end }) => end)).toEqual(["claimed"]);
  });

  it("should not reach the agent where a takeover has it, whose replies go through the hooks", async () => {
    const { receive, channel } = await scene({
      on: {
        takeover: (api) =>
          void api.on("reply_dispatch", (_, { dispatcher }) => {
            dispatcher.sendFinalReply({ text: "mine" });
            return { handled: true, queuedFinal: true, counts: { ...COUNTS, final: 1 } };
          }),
        loud: (api) => void api.on("message_sending", ({ content }) => ({ content: content.toUpperCase() })),
      },
    });
    expect(await receive()).toMatchObject({ end: "claimed", hook: "reply_dispatch", by: "takeover" });
    expect(channel.texts).toEqual(["MINE"]);
  });

  it("should end with a notice where the plugin that owns the conversation does not take it", async () => {
    const { receive, channel } = await scene({
      on: { owner: (api) => void api.on("inbound_claim", () => null) },
      bindings: { ownerOf: () => ({ pluginId: "owner" }) },
    });
    expect(await receive()).toMatchObject({ end: "refused", outcome: "declined", plugin: "owner" });
    expect(channel.texts).toEqual([expect.stringContaining('"owner"')]);
  });

  it("should be taken once, however often it comes", async () => {
    const { receive, channel, completions } = await scene();
    const outcomes = await Promise.all([receive(), receive(), receive()]);
    expect(outcomes.map(({ end }) => end)).toEqual(["answered", "duplicate", "duplicate"]);
    expect(outcomes.map(({ completion }) => completion === null)).toEqual([false, true, true]);
    expect([channel.sends.length, completions.length]).toEqual([1, 1]);
  });

  it("should have its attachments staged for the agent", async () => {
    const seen: unknown[] = [];
    const { receive } = await scene({
      stage: (original) => original.map((_, n) => ({ path: `/staged/${n}` })),
      agent: ({ message }) => void seen.push(message.attachments),
    });
    await receive({ attachments: { state: "remote", original: [{ url: "https://cdn.test/a" }] } });
    expect(seen).toMatchObject([{ state: "staged", media: [{ path: "/staged/0" }] }]);
  });
});

describe("the completion of a turn", () => {
  it("should be made of what was delivered, as the hooks left it", async () => {
    const { receive, completions } = await scene({
      on: {
        policy(api) {
          api.on("message_sending", ({ content }) =>
            content === "secret" ? { cancel: true } : { content: content.toUpperCase() },
          );
        },
      },
      agent: ({ dispatcher }) => {
        dispatcher.sendToolResult({ text: "looked" });
        dispatcher.sendBlockReply({ text: "secret" });
        return [{ text: "one" }, { text: " " }, { text: "two" }];
      },
    });
    const { completion, runId, sessionKey } = await receive();
    expect(completions).toEqual([completion]);
    expect(completion).toMatchObject({ runId, sessionKey, end: "answered" });
    expect(completion?.delivered).toEqual([{ text: "LOOKED" }, { text: "ONE" }, { text: "TWO" }]);
    expect(completion?.replies.map(({ kind, outcome: { status } }) => [kind, status])).toEqual([
      ["tool", "sent"],
      ["block", "suppressed"],
      ["final", "sent"],
      ["final", "sent"],
    ]);
    expect(completion?.receipt).toMatchObject({ final: { delivered: 2 }, anyVisibleDelivered: true });
  });

  it("should not be changed by what is said after the turn", async () => {
    const late = gate();
    let admitted: boolean | undefined;
    const { receive, channel } = await scene({
      agent: ({ dispatcher }) => {
        void late.opened.then(() => {
          admitted = dispatcher.sendFinalReply({ text: "late" });
        });
        return { text: "in time" };
      },
    });
    await receive();
    late.open();
    await late.opened;
    expect([admitted, channel.texts]).toEqual([false, ["in time"]]);
  });

  it("should be a failure's own, whoever listens", async () => {
    const { receive, log } = await scene({
      onCompletion: () => {
        throw new Error("the listener fell over");
      },
    });
    expect(await receive()).toMatchObject({ end: "answered" });
    expect(log).toEqual([expect.stringContaining("the listener fell over")]);
  });

  it("should be told of in one line, redacted, with its controls escaped", async () => {
    const { receive, log } = await scene({
      redact: ["sk-[a-z]+"],
      on: {
        takeover: (api) =>
          api.on("reply_dispatch", (_, { recordProcessed }) => {
            recordProcessed("error", { error: "\u001b[2Jno sk-secret\nat all" });
            return { handled: true, queuedFinal: false, counts: COUNTS };
          }),
      },
    });
    await receive();
    expect(log).toEqual([expect.stringContaining("\\u{1b}[2Jno [redacted]\\u{a}at all")]);
  });

  it("should be a failure's own also where it listens asynchronously, the log included", async () => {
    const unhandled: unknown[] = [];
    const note = (thrown: unknown): void => void unhandled.push(thrown);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    const fall = async (): Promise<void> => {
      throw new Error("the listener fell over");
    };
    const { receive } = await scene({
      onCompletion: fall,
      onChatEvent: fall,
      onWarning: fall,
      log: fall,
      agent: ({ emit, runId }) => {
        emit({ type: "lifecycle", runId });
        throw new Error("no model");
      },
    });
    expect(await receive()).toMatchObject({ end: "failed", at: "agent" });
    // Node tells of unhandled rejections once a macrotask is done.
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  });
});

describe("what fails at a gateway", () => {
  it("should be told to the user once where it is the agent, and not be tried again", async () => {
    const { receive, channel, log } = await scene({
      redact: ["hunter[0-9]"],
      agent: () => {
        throw new Error("the model refuses hunter2");
      },
    });
    expect(await receive()).toMatchObject({
      end: "failed",
      at: "agent",
      retryable: false,
      error: expect.stringContaining("[redacted]"),
    });
    expect(channel.sends.map(({ part }) => part.isError)).toEqual([true]);
    expect(await receive()).toMatchObject({ end: "duplicate" });
    expect(log.join()).toContain("the model refuses [redacted]");
    expect(log.join()).not.toContain("hunter2");
  });

  it("should not be told beside a final reply", async () => {
    const { receive, channel } = await scene({
      agent: ({ dispatcher }) => {
        dispatcher.sendFinalReply({ text: "done" });
        throw new Error("after all");
      },
    });
    await receive();
    expect(channel.texts).toEqual(["done"]);
  });

  it.each([
    [
      "the plan",
      {
        plan: () => {
          throw new Error("no plan");
        },
      },
    ],
    ["the owner's look-up", { bindings: { ownerOf: () => Promise.reject(new Error("no plan")) } }],
  ])("should leave the message to come again where it is %s", async (_, options) => {
    const { receive } = await scene(options);
    const failed = { end: "failed", at: "host", retryable: true, error: expect.stringContaining("no plan") };
    expect([await receive(), await receive()]).toMatchObject([failed, failed]);
  });

  it("should say that there is no such channel", async () => {
    const { receive } = await scene();
    expect(await receive({ channelId: "__proto__" })).toMatchObject({
      end: "failed",
      error: expect.stringContaining('there is no channel "__proto__"'),
    });
  });

  it("should keep an ACP takeover's failure from the model", async () => {
    const { receive, channel } = await scene({
      on: {
        backend: (api) =>
          void api.on("reply_dispatch", () => {
            throw new Error("the backend is gone");
          }),
      },
      plan: () => ({ target: { sessionKey: "acp:1" } }),
      agent: () => ({ text: "asked" }),
    });
    expect(await receive()).toMatchObject({ end: "failed", at: "takeover", retryable: false });
    expect(channel.sends.map(({ part }) => part.isError)).toEqual([true]);
  });
});

describe("where replies go", () => {
  it("should be where the plan says, and takeovers are told", async () => {
    const elsewhere = new TestChannel("mail");
    const told: object[] = [];
    const { receive, channel } = await scene({
      channels: [new TestChannel(), elsewhere],
      plan: () => ({ replyTo: { channelId: "mail", to: "ada@example.com", threadId: "t-1", accountId: "a-1" } }),
      on: { witness: (api) => void api.on("reply_dispatch", (event) => void told.push(event)) },
    });
    await receive();
    expect(channel.sends).toEqual([]);
    expect(elsewhere.sends).toMatchObject([{ to: "ada@example.com", threadId: "t-1", accountId: "a-1" }]);
    expect(told[0]).toMatchObject({
      shouldRouteToOriginating: true,
      originatingChannel: "mail",
      originatingTo: "ada@example.com",
      originatingThreadId: "t-1",
      originatingAccountId: "a-1",
    });
  });

  it("should be nowhere where the policy denies it, whoever answers", async () => {
    const { receive, channel } = await scene({ plan: () => ({ dispatch: { sendPolicy: "deny" } }) });
    expect(await receive()).toMatchObject({ end: "answered", completion: { delivered: [], replies: [] } });
    expect(channel.sends).toEqual([]);
  });

  it("should have two channels of one id told apart at once, and a stage's limit that is none", async () => {
    const one = { store: "memory:", agent: () => null };
    const stage = { timeoutMs: 0, run: () => null };
    await expect(createGateway({ ...one, channels: [new TestChannel(), new TestChannel()] })).rejects.toThrow(
      RangeError,
    );
    const channel = { channelId: "chat", beforeDeliver: [stage], send: () => ({}) };
    await expect(createGateway({ ...one, channels: [channel] })).rejects.toThrow(RangeError);
  });
});

describe("plugins of a gateway", () => {
  it("should come and go while it runs", async () => {
    const { gateway, receive, channel } = await scene();
    const shout = (mark: string) =>
      plugin("shout", (api) => void api.on("message_sending", ({ content }) => ({ content: `${content}${mark}` })));
    gateway.plugins.load(shout("!"));
    await receive();
    gateway.plugins.load(shout("?"));
    await receive({ messageId: "m-2" });
    gateway.plugins.unload("shout");
    await receive({ messageId: "m-3" });
    expect(channel.texts).toEqual(["You said: hello!", "You said: hello?", "You said: hello"]);
  });

  it("should not keep a gateway from closing its ledger where one cannot be loaded", async () => {
    const options = { store: "memory:", agent: () => null, channels: [] };
    const broken = { id: "Not An Id", register: () => {} };
    await expect(createGateway({ ...options, plugins: [broken] })).rejects.toMatchObject({ code: "HL_PLUGIN" });
  });
});

describe("a turn of a session", () => {
  it("should wait for the one before it, and others go on meanwhile", async () => {
    const first = gate();
    const order: string[] = [];
    const { receive } = await scene({
      agent: async ({ message: { messageId = "" } }) => {
        order.push(`${messageId} begins`);
        if (messageId === "m-1") await first.opened;
        order.push(`${messageId} ends`);
      },
    });
    const turns = [receive(), receive({ messageId: "m-2" }), receive({ messageId: "m-3", conversationId: "c-2" })];
    await turns[2];
    expect(order).toEqual(["m-1 begins", "m-3 begins", "m-3 ends"]);
    first.open();
    await Promise.all(turns);
    expect(order.slice(3)).toEqual(["m-1 ends", "m-2 begins", "m-2 ends"]);
  });

  it("should be refused where too many wait, in its session or in all, and may come again", async () => {
    const held = gate();
    const { receive } = await scene({
      limits: { waitingPerSession: 1, messages: 3 },
      agent: async () => held.opened,
    });
    const turns = [receive(), receive({ messageId: "m-2" })];
    const busy = { end: "busy", retryable: true, completion: null };
    expect(await receive({ messageId: "m-3" })).toMatchObject(busy);
    turns.push(receive({ messageId: "m-4", conversationId: "c-2" }));
    expect(await receive({ messageId: "m-5", conversationId: "c-3" })).toMatchObject(busy);
    held.open();
    await Promise.all(turns);
    expect(await receive({ messageId: "m-3" })).toMatchObject({ end: "answered" });
  });

  it("should be one of very many that wait, without a word of leaks", async () => {
    const warnings: string[] = [];
    const listen = ({ name }: Error): void => void warnings.push(name);
    process.on("warning", listen);
    const { receive } = await scene({ agent: () => new Promise((resolve) => setImmediate(() => resolve(null))) });
    const turns = Array.from({ length: 400 }, (_, n) =>
      receive({ messageId: `m-${n}`, conversationId: `c-${n % 20}` }),
    );
    expect((await Promise.all(turns)).filter(({ end }) => end === "answered")).toHaveLength(400);
    await new Promise(setImmediate);
    process.off("warning", listen);
    expect(warnings).toEqual([]);
  });

  it("should be let go when it is aborted while nobody says who owns its conversation", async () => {
    const abort = new AbortController();
    const { receive } = await scene({ bindings: { ownerOf: hang } });
    const turn = receive({}, abort.signal);
    abort.abort();
    expect(await turn).toMatchObject({ end: "aborted", retryable: true });
  });

  it("should leave the line when it is aborted there, and may come again", async () => {
    const held = gate();
    const { receive } = await scene({ agent: async () => held.opened });
    const first = receive();
    const abort = new AbortController();
    const second = receive({ messageId: "m-2" }, abort.signal);
    const third = receive({ messageId: "m-3" });
    abort.abort();
    expect(await second).toMatchObject({ end: "aborted", retryable: true, completion: null });
    held.open();
    expect(await Promise.all([first, third])).toMatchObject([{ end: "answered" }, { end: "answered" }]);
    expect(await receive({ messageId: "m-2" })).toMatchObject({ end: "answered" });
  });
});

describe("an aborted turn", () => {
  it("should not be waited for any longer, and may come again where nothing was said", async () => {
    const begun = gate();
    const { receive, channel } = await scene({
      agent: ({ message: { body } }) => {
        if (body === "again") return { text: "answered" };
        begun.open();
        return hang();
      },
    });
    const abort = new AbortController();
    const turn = receive({}, abort.signal);
    await begun.opened;
    abort.abort();
    expect(await turn).toMatchObject({ end: "aborted", retryable: true, completion: { end: "aborted" } });
    expect(await receive({ body: "again" })).toMatchObject({ end: "answered" });
    expect(channel.texts).toEqual(["answered"]);
  });

  it("should not come again where something was said", async () => {
    const abort = new AbortController();
    const { receive } = await scene({
      agent: async ({ dispatcher }) => {
        dispatcher.sendBlockReply({ text: "well" });
        await dispatcher.waitForIdle();
        abort.abort();
        return { text: "too late" };
      },
    });
    expect(await receive({}, abort.signal)).toMatchObject({ end: "aborted", retryable: false });
    expect(await receive()).toMatchObject({ end: "duplicate" });
  });

  it.each(["reply_payload_sending", "message_sending"] as const)(
    "should come again where its answer was not sent, for %s hung",
    async (hook) => {
      const begun = gate();
      let asked = 0;
      const { receive, channel } = await scene({
        on: {
          hanging: (api) =>
            void api.on(hook, () => {
              begun.open();
              return asked++ === 0 ? hang() : undefined;
            }),
        },
      });
      const abort = new AbortController();
      const turn = receive({}, abort.signal);
      await begun.opened;
      abort.abort();
      expect(await turn).toMatchObject({ end: "aborted", retryable: true, completion: { end: "aborted" } });
      expect(await receive()).toMatchObject({ end: "answered" });
      expect(channel.texts).toEqual(["You said: hello"]);
    },
  );

  it.each(["before_dispatch", "reply_dispatch", "before_agent_reply"] as const)(
    "should end in %s, whoever hangs there",
    async (hook) => {
      const begun = gate();
      const { receive, gateway } = await scene({
        on: {
          hanging: (api) =>
            void api.on(hook, () => {
              begun.open();
              return hang();
            }),
        },
      });
      const abort = new AbortController();
      const turn = receive({}, abort.signal);
      await begun.opened;
      abort.abort();
      expect(await turn).toMatchObject({ end: "aborted", retryable: true });
      gateway.plugins.unload("hanging");
      expect(await receive()).toMatchObject({ end: "answered" });
    },
  );

  it("should have its plugins asked again when the message comes again, under the same run id, too", async () => {
    const abort = new AbortController();
    let asked = 0;
    const { receive } = await scene({
      on: {
        claimer: (api) =>
          void api.on("before_agent_reply", () => {
            if (++asked > 1) return { handled: true };
            abort.abort();
            return hang();
          }),
      },
    });
    expect(await receive({ runId: "r-1" }, abort.signal)).toMatchObject({ end: "aborted", retryable: true });
    expect(await receive({ runId: "r-1" })).toMatchObject({ end: "claimed", by: "claimer" });
  });

  it.each(["plan", "agent"] as const)("should be none where its signal was aborted during the %s", async (stage) => {
    const abort = new AbortController();
    const cut = () => {
      abort.abort();
      return {};
    };
    const { receive, channel } = await scene(stage === "plan" ? { plan: cut } : { agent: cut });
    expect(await receive({}, abort.signal)).toMatchObject({ end: "aborted", retryable: true });
    expect(channel.sends).toEqual([]);
  });
});

describe("a gateway that closes", () => {
  it("should answer what it has taken, what waits in line included, and take nothing more", async () => {
    const held = gate();
    const { gateway, receive, channel } = await scene({
      agent: async ({ message }) => {
        await held.opened;
        return { text: `${message.messageId}` };
      },
    });
    const turns = [receive(), receive({ messageId: "m-2" })];
    const closing = gateway.close();
    expect(await receive({ messageId: "m-3" })).toMatchObject({ end: "closed", retryable: true });
    held.open();
    await Promise.all([closing, gateway.close()]);
    expect(await Promise.all(turns)).toMatchObject([{ end: "answered" }, { end: "answered" }]);
    expect(channel.texts).toEqual(["m-1", "m-2"]);
  });

  it("should abort what takes too long, and let it come again", async () => {
    const { gateway, receive } = await scene({ agent: () => hang(), closeTimeoutMs: 20 });
    const turns = [receive(), receive({ messageId: "m-2" })];
    await gateway.close();
    const aborted = { end: "aborted", retryable: true };
    expect(await Promise.all(turns)).toMatchObject([aborted, aborted]);
  });

  it("should not wait for ever for an observer that hangs, or a channel that never answers", async () => {
    const { gateway, receive, channel, log } = await scene({
      on: { hanging: (api) => void api.on("message_received", () => hang()) },
      closeTimeoutMs: 20,
    });
    channel.answer = () => hang();
    void receive();
    await gateway.close();
    expect(log).toEqual([
      expect.stringContaining("1 turns were left"),
      expect.stringContaining("observers were left under way"),
    ]);
  });

  it("should leave a store open that is its caller's", async () => {
    const { openMemoryStore } = await import("#src/store/memory.js");
    const store = openMemoryStore();
    const { gateway, receive } = await scene({
      store,
      on: { witness: (api) => void api.on("before_dispatch", () => null) },
    });
    await receive(MESSAGE);
    await gateway.close();
    const pages = [];
    for await (const page of store.readStreams({ order: "oldest" })) pages.push(...page);
    expect(pages).toHaveLength(1);
  });
});
