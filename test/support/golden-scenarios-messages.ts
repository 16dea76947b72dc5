/** What golden ledgers tell of message hooks: one kind of run each. */
import type { MessageHookName } from "#src/messages/hooks.js";
import type { HandlerOptions, MessagePlugin } from "#src/messages/plugin.js";
import type { RecordedRuns } from "#src/messages/recorded-runs.js";
import type { Handler } from "#src/messages/types.js";
import type { GoldenStage } from "./golden-stage.js";
import { settled } from "./virtual-clock.js";

type Scenario = (stage: GoldenStage) => Promise<void>;

const CONTEXT = { channelId: "chat", sessionKey: "s-1", runId: "run-1", senderId: "ada" };
const INBOUND = { content: "Größe? 👍 \u2028", isGroup: false, senderId: "ada" };
const SENDING = { to: "ada", content: "the key is under the mat", metadata: { channel: "chat", mediaUrls: ["m-1"] } };
const REPLY = {
  payload: { text: "one two three", mediaUrls: ["m-1", "m-2"], presentation: { kind: "card", rows: [1, 2.5, -0] } },
  kind: "final",
  usageState: { model: "large", usage: { input: 10, output: 3 } },
} as const;
const SENT = { to: "ada", content: "one", success: true, messageId: "m-9" };

export const MESSAGE_SCENARIOS: Readonly<Record<string, Scenario>> = {
  "messages-claimed": (stage) =>
    ran(
      stage.runs([
        plugin("shy", "before_dispatch", () => ({ handled: false, text: "dropped" })),
        plugin("broken", "before_dispatch", () => {
          throw new Error("no such table");
        }),
        plugin("faq", "before_dispatch", () => ({ handled: true, text: "Hello yourself." }), { timeoutMs: 50 }),
        plugin("late", "before_dispatch", () => ({ handled: true })),
      ]),
      stage,
      (runs) => runs.claim("before_dispatch", INBOUND, CONTEXT),
    ),

  "messages-unclaimed": (stage) =>
    ran(
      stage.runs([
        plugin("shy", "before_agent_reply", () => null),
        plugin("slow", "before_agent_reply", never, { timeoutMs: 20 }),
      ]),
      stage,
      (runs) => runs.claim("before_agent_reply", { cleanedBody: "hello" }, { runId: "run-1", trigger: "user" }),
    ),

  "messages-skipped": (stage) =>
    ran(
      stage.runs([
        plugin("cron", "before_agent_reply", () => ({ handled: true }), { eligibleTriggers: ["cron"] }),
        plugin("all", "before_agent_reply", () => ({ handled: true, reply: { text: "hi" }, reason: "greeting" })),
      ]),
      stage,
      (runs) => runs.claim("before_agent_reply", { cleanedBody: "hello" }, { sessionKey: "s-1", trigger: "user" }),
    ),

  "messages-rewritten": (stage) =>
    ran(
      stage.runs([
        plugin("scrub", "message_sending", () => ({ content: "the key is gone" })),
        plugin("mark", "message_sending", () => ({ metadata: { score: 3, tags: ["a"] }, cancel: false })),
        plugin("slow", "message_sending", never, { timeoutMs: 15 }),
        plugin("same", "message_sending", () => ({ content: "the key is gone", cancelReason: "kept for later" })),
        plugin("first", "message_sending", () => ({ content: "" }), { priority: 10 }),
      ]),
      stage,
      (runs) => runs.rewrite(SENDING, CONTEXT),
    ),

  "messages-unchanged": (stage) =>
    ran(stage.runs([plugin("shy", "message_sending", () => undefined)]), stage, (runs) =>
      runs.rewrite(SENDING, CONTEXT),
    ),

  "messages-cancelled": (stage) =>
    ran(
      stage.runs([
        plugin("scrub", "message_sending", () => ({ content: "the key is gone", metadata: { rule: "scrub" } })),
        plugin("guard", "message_sending", () => ({
          cancel: true,
          cancelReason: "it names a key",
          metadata: { rule: "keys" },
          content: "never sent",
        })),
        plugin("polite", "message_sending", () => ({ content: "please" })),
      ]),
      stage,
      (runs) => runs.rewrite(SENDING, CONTEXT),
    ),

  "messages-cancelled-bare": (stage) =>
    ran(stage.runs([plugin("guard", "message_sending", () => ({ cancel: true }))]), stage, (runs) =>
      runs.rewrite(SENDING, CONTEXT),
    ),

  "messages-blocked": (stage) =>
    ran(
      stage.runs([plugin("guard", "message_sending", never), plugin("polite", "message_sending", () => undefined)], {
        onFailure: { message_sending: "block" },
        timeouts: { message_sending: 200 },
      }),
      stage,
      (runs) => runs.rewrite(SENDING, CONTEXT),
    ),

  "messages-waterfall": (stage) =>
    ran(
      stage.runs([
        plugin("short", "reply_payload_sending", ({ payload }) => ({ payload: { ...payload, text: "one" } })),
        plugin("broken", "reply_payload_sending", () => Promise.reject(new Error("out of tape"))),
        plugin("shy", "reply_payload_sending", () => ({})),
        plugin("voice", "reply_payload_sending", () => ({ payload: { text: "", audioAsVoice: true } })),
      ]),
      stage,
      (runs) => runs.waterfall(REPLY, CONTEXT),
    ),

  "messages-waterfall-cancelled": (stage) =>
    ran(
      stage.runs([
        plugin("short", "reply_payload_sending", () => ({ payload: { text: "one" } })),
        plugin("quiet", "reply_payload_sending", () => ({
          cancel: true,
          reason: "it is late",
          payload: { text: "0" },
        })),
        plugin("voice", "reply_payload_sending", () => ({ payload: { text: "two" } })),
      ]),
      stage,
      (runs) => runs.waterfall(REPLY, CONTEXT),
    ),

  "messages-waterfall-blocked": (stage) =>
    ran(
      stage.runs([plugin("broken", "reply_payload_sending", () => Promise.reject(new Error("out of tape")))], {
        onFailure: { reply_payload_sending: "block" },
      }),
      stage,
      (runs) => runs.waterfall(REPLY, CONTEXT),
    ),

  "messages-notified": (stage) =>
    ran(
      stage.runs([
        plugin("slow", "message_sent", () => after(stage, 20)),
        plugin("broken", "message_sent", () => after(stage, 5).then(() => Promise.reject(new Error("disk full")))),
        plugin("stuck", "message_sent", never, { timeoutMs: 30 }),
        plugin("quick", "message_sent", () => ({ cancel: true })),
      ]),
      stage,
      (runs) => runs.notify("message_sent", SENT, CONTEXT),
    ),

  "messages-aborted": async (stage) => {
    const caller = new AbortController();
    stage.clock.first(5, () => caller.abort());
    const runs = stage.runs([
      plugin("stuck", "before_dispatch", never),
      plugin("late", "before_dispatch", () => ({ handled: true })),
    ]);
    await ran(runs, stage, () => runs.claim("before_dispatch", INBOUND, CONTEXT, { signal: caller.signal }));
  },

  "messages-open": async (stage) => {
    void stage.runs([plugin("stuck", "message_received", never)]).notify("message_received", received(), CONTEXT);
    await settled();
  },

  "messages-recovered": async (stage) => {
    void stage
      .runs([plugin("stuck", "message_received", never), plugin("quick", "message_received", () => undefined)])
      .notify("message_received", received(), CONTEXT);
    await settled();
    await stage.dieAndRecover();
  },

  "messages-recovered-cancelled": async (stage) => {
    const runs = stage.runs([
      plugin("guard", "message_sending", async () => ({ cancel: true, cancelReason: "it names a key" })),
    ]);
    await ran(runs, stage, () => runs.rewrite(SENDING, CONTEXT));
    await stage.dieBefore("decided");
  },

  "messages-unrecordable": (stage) =>
    ran(
      stage.runs([
        plugin("odd", "before_dispatch", () => {
          const result: { [key: string]: unknown } = { handled: true, big: 1n, no: Number.NaN, bytes: Buffer.of(1) };
          result["self"] = result;
          return result;
        }),
      ]),
      stage,
      (runs) => runs.claim("before_dispatch", { ...INBOUND, ...{ when: new Date(0), call: () => {} } }, CONTEXT),
    ),

  "messages-warnings": (stage) =>
    ran(
      stage.runs([plugin("odd", "message_sending", (() => ({ content: 7, cancelReason: "why" })) as never)]),
      stage,
      (runs) => runs.rewrite(SENDING, CONTEXT),
    ),

  "messages-redacted": (stage) =>
    ran(
      stage.runs(
        [
          plugin("echo", "message_sending", ({ content }) => ({ content: `${content}!`, metadata: { saw: content } })),
          plugin("leaky", "message_sending", ({ content }) => Promise.reject(new Error(`no way: ${content}`))),
        ],
        { redact: ["sk-[0-9]+"] },
      ),
      stage,
      (runs) => runs.rewrite({ ...SENDING, content: "the key is sk-12345678" }, CONTEXT),
    ),

  "messages-large": (stage) =>
    ran(
      stage.runs([
        plugin("long", "reply_payload_sending", ({ payload }) => ({
          payload: { ...payload, text: "longer ".repeat(1000) },
        })),
      ]),
      stage,
      (runs) => runs.waterfall({ payload: { text: "story ".repeat(1000) }, kind: "block" }, CONTEXT),
    ),
};

async function ran(
  runs: RecordedRuns,
  stage: GoldenStage,
  begin: (runs: RecordedRuns) => Promise<unknown>,
): Promise<void> {
  const run = begin(runs);
  await stage.clock.run();
  await run;
  await runs.idle();
}

function plugin<H extends MessageHookName>(
  id: string,
  hook: H,
  handler: Handler<H>,
  options: HandlerOptions = {},
): MessagePlugin {
  return { id, version: "1.2.3", register: (api) => void api.on(hook, handler, options) };
}

function never(): Promise<never> {
  return new Promise(() => {});
}

function after(stage: GoldenStage, ms: number): Promise<void> {
  return new Promise((resolve) => stage.clock.timer(ms, resolve));
}

function received() {
  return { from: "ada", content: "hello", media: [{ path: "a.png", contentType: "image/png" }], messageId: "m-1" };
}
