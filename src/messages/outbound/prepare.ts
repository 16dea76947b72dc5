/** What the sending hooks make of a payload. They are asked once, before anything is stored or sent. */

import type { HostReplyPayload } from "../facts.js";
import type { RewriteRun, RunOptions, WaterfallRun } from "../runs.js";
import type { MessageSendingEvent, ReplyPayloadSendingEvent } from "../types.js";
import { abortOf, type DeliveryFailure, failureOf } from "./failure.js";
import { boundedEffect, type HookEffect } from "./hook-effect.js";
import type { Delivery } from "./options.js";
import type { HookRunRef, Suppressed } from "./outcome.js";
import { mediaOf, normalise } from "./payload.js";
import { contentOf, withContent } from "./transcript.js";
import { withoutTrust, withTrustOf } from "./trust.js";

type Stage =
  /** Visible, normalised, as the hooks left it: what durable custody stores. */
  | { readonly end: "ready"; readonly payload: HostReplyPayload }
  | { readonly end: "suppressed"; readonly outcome: Suppressed }
  /** `content`: as hooks last saw it. */
  | { readonly end: "failed"; readonly failure: DeliveryFailure; readonly content: string };

/** A run that was asked, and the promise of its record. */
type Asked = Pick<HookRunRef, "hook" | "dispatchId"> & Pick<RewriteRun, "stored">;

export type Prepared = Stage & { readonly asked: readonly Asked[] };

/** Once the ledger has said of each run whether it has it. Never rejects. */
export function hookRunsOf({ asked }: Pick<Prepared, "asked">): Promise<readonly HookRunRef[]> {
  return Promise.all(
    asked.map(async ({ hook, dispatchId, stored }) => ({ hook, dispatchId, recorded: (await stored) === null })),
  );
}

/** Never rejects. */
export async function prepare(payload: HostReplyPayload, delivery: Delivery): Promise<Prepared> {
  const asked: Asked[] = [];
  let latest: HostReplyPayload = {};
  try {
    const original = normalise(payload);
    if (original === null) return { ...suppressed("no_visible_payload"), asked };
    latest = original;
    if (delivery.signal?.aborted) return { ...aborted(original, delivery), asked };
    for (const ask of [editPayload, rewriteContent]) {
      const stage = await ask(latest, delivery, asked);
      if (stage.end !== "ready") return { ...stage, asked };
      latest = stage.payload;
      if (delivery.signal?.aborted) return { ...aborted(latest, delivery), asked };
    }
  } catch (fault) {
    return { end: "failed", failure: failureOf("before-send", fault), content: contentOf(latest), asked };
  }
  return { end: "ready", payload: latest, asked };
}

async function editPayload(payload: HostReplyPayload, delivery: Delivery, asked: Asked[]): Promise<Stage> {
  const { runs, route } = delivery;
  const run = await runs.waterfall(payloadEvent(payload, delivery), route.context, runOptions(delivery));
  note(asked, "reply_payload_sending", run);
  switch (run.end) {
    case "sent": {
      const edited = normalise(run.payload);
      return edited === null
        ? suppressed("empty_after_reply_payload_sending_hook")
        : { end: "ready", payload: withTrustOf(payload, edited) };
    }
    case "cancelled": {
      const { effect } = boundedEffect(run.reason === undefined ? {} : { cancelReason: run.reason });
      return suppressed("cancelled_by_reply_payload_sending_hook", run.by, effect);
    }
    case "blocked":
      return suppressed("blocked_by_failed_hook", run.by);
    case "aborted":
      return aborted(payload, delivery);
  }
}

async function rewriteContent(payload: HostReplyPayload, delivery: Delivery, asked: Asked[]): Promise<Stage> {
  const { runs, route, warn } = delivery;
  const event = contentEvent(payload, delivery);
  const run = await runs.rewrite(event, route.context, runOptions(delivery));
  note(asked, "message_sending", run);
  switch (run.end) {
    case "sent": {
      const rewritten = run.content === event.content ? payload : withContent(payload, run.content);
      return rewritten === null ? suppressed("empty_after_message_sending_hook") : { end: "ready", payload: rewritten };
    }
    case "cancelled": {
      const { effect, truncatedBytes: bytes } = boundedEffect(run);
      if (bytes !== undefined) warn({ kind: "cancel-metadata-truncated", by: run.by, bytes });
      return suppressed("cancelled_by_message_sending_hook", run.by, effect);
    }
    case "blocked":
      return suppressed("blocked_by_failed_hook", run.by);
    case "aborted":
      return aborted(payload, delivery);
  }
}

function payloadEvent(payload: HostReplyPayload, { route, kind, usage }: Delivery): ReplyPayloadSendingEvent {
  const { channelId, sessionKey, runId } = route.context;
  const usageState = runId ? usage?.of(runId) : undefined;
  return {
    payload: withoutTrust(payload),
    kind,
    ...(channelId ? { channel: channelId } : {}),
    ...(sessionKey ? { sessionKey } : {}),
    ...(runId ? { runId } : {}),
    ...(usageState === undefined ? {} : { usageState }),
  };
}

function contentEvent(payload: HostReplyPayload, { route }: Delivery): MessageSendingEvent {
  const { channelId, accountId } = route.context;
  const mediaUrls = mediaOf(payload);
  return {
    to: route.to,
    content: contentOf(payload),
    ...(payload.replyToId === undefined ? {} : { replyToId: payload.replyToId }),
    ...(route.threadId ? { threadId: route.threadId } : {}),
    metadata: {
      ...(channelId ? { channel: channelId } : {}),
      ...(accountId ? { accountId } : {}),
      ...(mediaUrls.length === 0 ? {} : { mediaUrls }),
    },
  };
}

function runOptions({ signal, deferred }: Delivery): RunOptions {
  return signal === undefined ? { deferred } : { deferred, signal };
}

function note(asked: Asked[], hook: Asked["hook"], { dispatchId, stored }: RewriteRun | WaterfallRun): void {
  if (dispatchId !== null) asked.push({ hook, dispatchId, stored });
}

function suppressed(reason: Suppressed["reason"], by?: string, hookEffect?: HookEffect): Stage {
  const outcome: Suppressed = {
    status: "suppressed",
    reason,
    ...(by === undefined ? {} : { by }),
    ...(hookEffect === undefined ? {} : { hookEffect }),
  };
  return { end: "suppressed", outcome };
}

function aborted(payload: HostReplyPayload, { signal }: Delivery): Stage {
  return { end: "failed", failure: abortOf(signal), content: contentOf(payload) };
}
