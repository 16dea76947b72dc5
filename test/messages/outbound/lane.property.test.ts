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
