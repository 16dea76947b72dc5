import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMessageHooks } from "#src/messages/create.js";
import type { ReplyKind } from "#src/messages/facts.js";
import type { ChannelAdapter, ChannelMessage, SendReceipt } from "#src/messages/outbound/adapter.js";
import { createReplyDispatcher } from "#src/messages/outbound/dispatcher.js";
import type { DeliveryOutcome } from "#src/messages/outbound/outcome.js";
import { definePlugin } from "#src/messages/plugin.js";
import type { MessageSentEvent } from "#src/messages/types.js";
import { openMemoryStore } from "#src/store/memory.js";

type Fate = "sends" | "cancelled" | "emptied" | "stage fails" | "send fails" | "partial";
type Reply = { readonly kind: ReplyKind; readonly fate: Fate };

const reply = fc.record({
  kind: fc.constantFrom<ReplyKind>("tool", "block", "final"),
  fate: fc.constantFrom<Fate>("sends", "cancelled", "emptied", "stage fails", "send fails", "partial"),
});

/** Where in its own delivery a reply may find the turn aborted. */
type Step = "edit" | "rewrite" | "stage" | "send";
const abort = fc.option(
  fc.record({ reply: fc.nat(7), step: fc.constantFrom<Step>("edit", "rewrite", "stage", "send") }),
);

/** What a plain loop over the replies says of each: its status, and what it sent. */
function expected(replies: readonly Reply[], abortAt: { readonly reply: number; readonly step: Step } | null) {
  let aborted = false;
  return replies.map(({ fate }, n) => {
    const steps: Step[] = [];
    const reach = (step: Step): boolean => {
      if (aborted) return false;
      steps.push(step);
      if (abortAt !== null && abortAt.reply === n && abortAt.step === step) aborted = true;
      return true;
    };
    const ended = (status: DeliveryOutcome["status"]) => ({ status, sends: steps.filter((s) => s === "send").length });
    const parts = fate === "partial" ? 2 : 1;
    if (!reach("edit") || aborted) return ended("failed");
    if (!reach("rewrite") || aborted) return ended("failed");
    if (fate === "cancelled" || fate === "emptied") return ended("suppressed");
    if (!reach("stage") || aborted || fate === "stage fails") return ended("failed");
    reach("send");
    if (fate === "send fails") return ended("failed");
    if (parts === 1) return ended("sent");
    reach("send");
    return ended("partial_failed");
  });
}

describe("a lane under any schedule of its parts, aborted anywhere", () => {
  it("should deliver in order what a plain loop says, and tell once of each that was not suppressed", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(reply, { minLength: 1, maxLength: 6 }),
        abort,
        async (scheduler, replies, abortAt) => {
          const turn = new AbortController();
          const sends: number[] = [];
          const told: MessageSentEvent[] = [];
          const outcomes: [ReplyKind, DeliveryOutcome][] = [];
          const numberOf = (text: string | undefined): number => Number(/\d+/.exec(text ?? "")?.[0]);
          const fateOf = (n: number): Fate => replies[n]?.fate ?? "sends";
          const reached = async (n: number, step: Step): Promise<void> => {
            await scheduler.schedule(Promise.resolve(), `${n} ${step}`);
            if (abortAt?.reply === n && abortAt.step === step) turn.abort();
          };
          const plugin = definePlugin({
            id: "p",
            register(api) {
              api.on("reply_payload_sending", async ({ payload }) => {
                await reached(numberOf(payload.text), "edit");
                return { payload };
              });
              api.on("message_sending", async ({ content }) => {
                const n = numberOf(content);
                await reached(n, "rewrite");
                if (fateOf(n) === "emptied") return { content: "" };
                return { cancel: fateOf(n) === "cancelled" };
              });
              api.on("message_sent", (event) => void told.push(event));
            },
          });
          const adapter: ChannelAdapter = {
            channelId: "test",
            beforeDeliver: [
              {
                async run(message: ChannelMessage) {
                  const n = numberOf(message.text);
                  await reached(n, "stage");
                  if (fateOf(n) === "stage fails") throw new Error("stage");
                  return message;
                },
              },
            ],
            async send({ part, idempotencyKey }): Promise<SendReceipt> {
              const n = numberOf(idempotencyKey.split(":")[1]);
              sends.push(n);
              await reached(n, "send");
              if (fateOf(n) === "send fails" || part.media?.url === "2") throw new Error("send");
              return { messageId: `m-${n}` };
            },
          };
          const hooks = await createMessageHooks({ store: openMemoryStore(), plugins: [plugin] });
          const dispatcher = createReplyDispatcher({
            runs: hooks.runs,
            route: { adapter, to: "x", context: { channelId: "test" } },
            signal: turn.signal,
            idempotencyKey: "k",
            onOutcome: (kind, outcome) => void outcomes.push([kind, outcome]),
          });
          for (const [n, { kind, fate }] of replies.entries()) {
            const payload = { text: `reply ${n}`, ...(fate === "partial" ? { mediaUrls: ["1", "2"] } : {}) };
            if (kind === "tool") dispatcher.sendToolResult(payload);
            else if (kind === "block") dispatcher.sendBlockReply(payload);
            else dispatcher.sendFinalReply(payload);
          }
          const receipt = await scheduler.waitFor(dispatcher.waitForIdle());
          await hooks.close();

          const plan = expected(replies, abortAt);
          expect(outcomes.map(([kind]) => kind)).toEqual(replies.map(({ kind }) => kind));
          expect(outcomes.map(([, { status }]) => status)).toEqual(plan.map(({ status }) => status));
          expect(sends).toEqual(plan.flatMap(({ sends: count }, n) => Array.from({ length: count }, () => n)));
          expect(told.map(({ content, success }) => [numberOf(content), success])).toEqual(
            plan.flatMap(({ status }, n) => (status === "suppressed" ? [] : [[n, status === "sent"]])),
          );
          const { anyVisibleDelivered, ...kinds } = receipt;
          const counted = Object.values(kinds).flatMap((counts) => Object.values(counts));
          expect(counted.reduce((sum, count) => sum + count, 0)).toBe(replies.length);
          expect(anyVisibleDelivered).toBe(plan.some(({ status }) => status === "sent" || status === "partial_failed"));
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("lanes that are filled and aborted at any time", () => {
  it("should settle what they admitted once, in order, and begin no send after the abort", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.tuple(fc.constantFrom("a", "b"), fc.constantFrom<ReplyKind>("tool", "block", "final")), {
          minLength: 1,
          maxLength: 8,
        }),
        async (scheduler, replies) => {
          const turns = { a: new AbortController(), b: new AbortController() };
          const log: string[] = [];
          const adapter: ChannelAdapter = {
            channelId: "test",
            async send({ to, part }) {
              log.push(`${to} sends ${part.text}`);
              await scheduler.schedule(Promise.resolve(), "send");
              return {};
            },
          };
          const plugin = definePlugin({
            id: "p",
            register(api) {
              api.on("message_sending", async () => {
                await scheduler.schedule(Promise.resolve(), "rewrite");
                return null;
              });
            },
          });
          const hooks = await createMessageHooks({ store: openMemoryStore(), plugins: [plugin] });
          const lane = (to: "a" | "b") =>
            createReplyDispatcher({
              runs: hooks.runs,
              route: { adapter, to, context: { channelId: "test" } },
              signal: turns[to].signal,
              onOutcome: (_, { status, payload }) => void log.push(`${to} ${status} ${payload?.text ?? ""}`),
            });
          const lanes = { a: lane("a"), b: lane("b") };
          const idle: Promise<unknown>[] = [];
          const admissions = scheduler.scheduleSequence(
            replies.map(([to, kind], n) => async () => {
              const send = { tool: "sendToolResult", block: "sendBlockReply", final: "sendFinalReply" } as const;
              lanes[to][send[kind]]({ text: String(n) });
              idle.push(lanes[to].waitForIdle());
            }),
          );
          scheduler.schedule(Promise.resolve(), "abort").then(() => {
            turns.a.abort();
            log.push("a aborted");
          });
          await scheduler.waitFor(admissions.task);
          await scheduler.waitFor(Promise.all(idle));
          await hooks.close();

          for (const to of ["a", "b"] as const) {
            const mine = replies.flatMap(([lane], n) => (lane === to ? [String(n)] : []));
            const settled = log.filter((line) => line.startsWith(`${to} sent`) || line.startsWith(`${to} failed`));
            expect(settled).toHaveLength(mine.length);
            const sends = log.filter((line) => line.startsWith(`${to} sends`)).map((line) => line.slice(8));
            expect(sends).toEqual(mine.slice(0, sends.length));
            if (to === "b") expect(sends).toEqual(mine);
            const receipt = await lanes[to].waitForIdle();
            const delivered = receipt.tool.delivered + receipt.block.delivered + receipt.final.delivered;
            expect(delivered).toBe(sends.length);
          }
          const abortedAt = log.indexOf("a aborted");
          expect(abortedAt === -1 ? [] : log.slice(abortedAt).filter((line) => line.startsWith("a sends"))).toEqual([]);
        },
      ),
      { numRuns: 100 },
    );
  });
});
