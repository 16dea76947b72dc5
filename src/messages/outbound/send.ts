/** A prepared payload on its way through its channel: stages, then part after part. No hook that may change it is asked any more. */

import type { HostReplyPayload } from "../facts.js";
import type { ChannelMessage, ChannelPart, SendReceipt } from "./adapter.js";
import { runStages } from "./before-deliver.js";
import { channelMessageOf, isEmpty, partsOf } from "./channel-message.js";
import { abortOf, type DeliveryFailure, failureOf } from "./failure.js";
import type { Delivery } from "./options.js";
import type { Ended, Failed, PartiallyFailed, Sent } from "./outcome.js";
import { contentOf } from "./transcript.js";

export type Sending = {
  readonly outcome: Ended;
  /** The final text, or the transcript of what is only spoken. */
  readonly content: string;
};

/** How far the attempts before this one had come. */
export type Progress = {
  /** Of the parts that are not to be sent again: the first ones. */
  readonly receipts: readonly SendReceipt[];
  /** Told in how many parts it goes out, those sent before included. */
  readonly onBegin?: (parts: number) => void;
  /** Told of each part that the channel took, but for the last; the next one waits for it. Must not reject. */
  readonly onPart: (receipts: readonly SendReceipt[]) => Promise<void>;
};

const FROM_THE_START: Progress = { receipts: [], onPart: async () => {} };

/** Never rejects. */
export async function send(
  payload: HostReplyPayload,
  delivery: Delivery,
  progress: Progress = FROM_THE_START,
): Promise<Sending> {
  const { route, kind, signal, clock } = delivery;
  const { adapter, to, context } = route;
  const staged = await runStages(adapter.beforeDeliver ?? [], channelMessageOf(payload), {
    kind,
    to,
    context,
    signal,
    clock,
  });
  switch (staged.end) {
    case "cancelled":
      return {
        outcome: { status: "suppressed", reason: "cancelled_by_channel", by: staged.by },
        content: contentOf(payload),
      };
    case "failed":
      return { outcome: { status: "failed", failure: staged.failure }, content: contentOf(payload) };
    case "ready": {
      const { message } = staged;
      const content = message.text ?? (payload.text === undefined ? contentOf(payload) : "");
      if (isEmpty(message)) return { outcome: { status: "suppressed", reason: "no_visible_payload" }, content };
      return { outcome: await sendParts(message, delivery, progress), content };
    }
  }
}

async function sendParts(
  message: ChannelMessage,
  delivery: Delivery,
  progress: Progress,
): Promise<Sent | PartiallyFailed | Failed> {
  const receipts = [...progress.receipts];
  const parts = partsOf(message);
  progress.onBegin?.(parts.length);
  for (const [n, part] of parts.entries()) {
    if (n < progress.receipts.length) continue;
    const sent = await sendPart(part, n, delivery);
    if ("failure" in sent) {
      const { failure } = sent;
      return receipts.length === 0 ? { status: "failed", failure } : { status: "partial_failed", receipts, failure };
    }
    receipts.push(sent.receipt);
    if (n + 1 < parts.length) await progress.onPart([...receipts]);
  }
  return { status: "sent", receipts };
}

type PartSent = { readonly receipt: SendReceipt } | { readonly failure: DeliveryFailure };

async function sendPart(part: ChannelPart, n: number, delivery: Delivery): Promise<PartSent> {
  const { route, signal, idempotencyKey } = delivery;
  const { accountId } = route.context;
  if (signal?.aborted) return { failure: abortOf(signal) };
  try {
    const receipt = await route.adapter.send({
      to: route.to,
      ...(route.threadId ? { threadId: route.threadId } : {}),
      ...(accountId ? { accountId } : {}),
      part,
      idempotencyKey: `${idempotencyKey}:${n}`,
      signal,
    });
    return { receipt: receiptOf(receipt) };
  } catch (thrown) {
    return { failure: failureOf("send", thrown) };
  }
}

/** Adapters in JavaScript are not held by the type: what is no receipt acknowledges, and says nothing more. */
export function receiptOf(returned: unknown): SendReceipt {
  const receipt: { readonly messageId?: unknown; readonly visible?: unknown } =
    typeof returned === "object" && returned !== null ? returned : {};
  const { messageId, visible } = receipt;
  return {
    ...(typeof messageId === "string" && messageId !== "" ? { messageId } : {}),
    ...(visible === false ? { visible } : {}),
  };
}
