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

/** Never rejects. */
export async function send(payload: HostReplyPayload, delivery: Delivery): Promise<Sending> {
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
      return { outcome: await sendParts(message, delivery), content };
    }
  }
}

async function sendParts(message: ChannelMessage, delivery: Delivery): Promise<Sent | PartiallyFailed | Failed> {
  const receipts: SendReceipt[] = [];
  for (const [n, part] of partsOf(message).entries()) {
    const sent = await sendPart(part, n, delivery);
    if ("failure" in sent) {
      const { failure } = sent;
      return receipts.length === 0 ? { status: "failed", failure } : { status: "partial_failed", receipts, failure };
    }
    receipts.push(sent.receipt);
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
function receiptOf(returned: SendReceipt | undefined | null): SendReceipt {
  const { messageId, visible } = returned ?? {};
  return {
    ...(typeof messageId === "string" && messageId !== "" ? { messageId } : {}),
    ...(visible === false ? { visible } : {}),
  };
}
