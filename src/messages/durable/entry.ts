/** A delivery as the queue keeps it, and as it is read back by whoever goes on with it. */

import type { QueuedDelivery } from "../../store/queue.js";
import type { HostReplyPayload, MessageContext, ReplyKind } from "../facts.js";
import type { Route, SendReceipt } from "../outbound/adapter.js";
import type { Delivery } from "../outbound/options.js";
import { normalise } from "../outbound/payload.js";
import { receiptOf } from "../outbound/send.js";

/** UTF-16 units of a channel's message id; a longer one is not kept. */
const MAX_MESSAGE_ID = 512;

/** Which channel it goes to, by the names that the host gives. */
export type ChannelAddress = { readonly channelId: string; readonly accountId?: string };

export type StoredRoute = Omit<Route, "adapter"> & { readonly channelId: string; readonly kind: ReplyKind };

/** Replies to one conversation, in one thread, through one account of a channel: their order is kept. */
export function laneOf({ adapter, to, threadId, context }: Route): string {
  return JSON.stringify([adapter.channelId, context.accountId ?? "", to, threadId ?? ""]);
}

/** What a queue keeps of a new delivery. Throws what JSON does of a payload that has none. */
export function entryOf(
  id: string,
  payload: HostReplyPayload,
  { route, kind, idempotencyKey }: Delivery,
  now: number,
): Omit<QueuedDelivery, "state" | "attempts"> {
  const { adapter, to, threadId, context } = route;
  const stored: StoredRoute = {
    channelId: adapter.channelId,
    to,
    ...(threadId === undefined ? {} : { threadId }),
    kind,
    context,
  };
  return {
    id,
    lane: laneOf(route),
    idempotencyKey: idempotencyKey.toWellFormed(),
    payload: JSON.stringify(payload),
    route: JSON.stringify(stored),
    session: (context.sessionKey || null)?.toWellFormed() ?? null,
    run: (context.runId || null)?.toWellFormed() ?? null,
    partsSent: 0,
    dueAt: now,
    createdAt: now,
    updatedAt: now,
    receipts: "[]",
    error: null,
  };
}

export function receiptsText(receipts: readonly SendReceipt[]): string {
  return JSON.stringify(
    receipts.map(({ messageId, visible }) => ({
      ...(messageId !== undefined && messageId.length <= MAX_MESSAGE_ID ? { messageId } : {}),
      ...(visible === undefined ? {} : { visible }),
    })),
  );
}

/** Null for what cannot be read as what it should be: nobody sends a guess. */
export function payloadOf({ payload }: Pick<QueuedDelivery, "payload">): HostReplyPayload | null {
  const parsed = parse(payload);
  return isObject(parsed) ? normalise(parsed) : null;
}

/** As many as there are parts sent, whatever is known of them. */
export function receiptsOf({ receipts, partsSent }: Pick<QueuedDelivery, "receipts" | "partsSent">): SendReceipt[] {
  const parsed = parse(receipts);
  const known: readonly unknown[] = Array.isArray(parsed) ? parsed : [];
  return Array.from({ length: partsSent }, (_, n) => {
    return receiptOf(known[n]);
  });
}

/** Null as for payloads. */
export function routeOf({ route }: Pick<QueuedDelivery, "route">): StoredRoute | null {
  const parsed = parse(route);
  if (!isObject(parsed)) return null;
  const { channelId, to, threadId, kind, context } = parsed;
  if (typeof channelId !== "string" || typeof to !== "string" || !isKind(kind) || !isContext(context)) return null;
  if (threadId !== undefined && typeof threadId !== "string") return null;
  return { channelId, to, kind, context, ...(threadId === undefined ? {} : { threadId }) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isKind(kind: unknown): kind is ReplyKind {
  return kind === "tool" || kind === "block" || kind === "final";
}

function isContext(context: unknown): context is MessageContext {
  return isObject(context) && typeof context["channelId"] === "string";
}
