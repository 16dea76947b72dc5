/** A message on its way from its channel to the agent: who may take it, who is told, and whether it is dispatched at all. */

import { type LogSink, loggerFor } from "../../subscribers/log.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { HookRuns } from "../runs.js";
import type { BindingOutcome, ConversationBindings } from "./bindings.js";
import { beforeDispatchContext, messageContext } from "./contexts.js";
import { dedupeKey, type Hold, type InboundDedupe } from "./dedupe.js";
import { beforeDispatchEvent, messageReceivedEvent } from "./events.js";
import type { InboundMessage } from "./message.js";
import { replyIn, textIn } from "./plugin-reply.js";
import { type Stager, stageMedia } from "./staging.js";

/** What lives as long as the host. */
export type InboundHost = {
  readonly runs: HookRuns;
  readonly dedupe: InboundDedupe;
  /** None: no plugin owns a conversation. */
  readonly bindings?: ConversationBindings;
  /** None: remote attachments are left as they are; see `stageMedia`. */
  readonly stage?: Stager;
  readonly log?: LogSink;
};

/** What belongs to the turn. */
export type ReceiveOptions = InboundHost & {
  /** Where its replies go, through all delivery hooks. */
  readonly dispatcher: ReplyDispatcher;
  /** Of the turn. */
  readonly signal?: AbortSignal;
};

export type Received =
  /** It was taken before: nothing was done. */
  | { readonly end: "duplicate" }
  /** It may come again. */
  | { readonly end: "aborted" }
  /** A plugin took it; no agent is to see it. */
  | {
      readonly end: "handled";
      readonly hook: "inbound_claim" | "before_dispatch";
      readonly by: string;
      readonly dispatchId: string | null;
      /** Was a final reply admitted? */
      readonly queuedFinal: boolean;
    }
  /** The plugin that owns the conversation did not handle it; the conversation was told, and no agent is to see it. */
  | {
      readonly end: "refused";
      readonly outcome: Extract<BindingOutcome, "declined" | "error">;
      readonly plugin: string;
      readonly queuedFinal: boolean;
    }
  /** It is the caller's to dispatch, with its attachments staged. */
  | {
      readonly end: "dispatch";
      readonly message: InboundMessage;
      /** The dispatch did not begin after all, and the message may come again. */
      readonly giveBack: () => void;
    };

/**
 * Takes the message once: whoever brings it again meanwhile waits for what becomes of it, and has a duplicate unless nothing did.
 * Rejects with what the host's own parts throw; the message may then come again, unless a plugin took it.
 */
export async function receiveMessage(message: InboundMessage, options: ReceiveOptions): Promise<Received> {
  const hold = await options.dedupe.hold(dedupeKey(message), options.signal);
  if (typeof hold === "string") return { end: hold };
  try {
    return (await claimedByOwner(message, hold, options)) ?? (await received(message, hold, options));
  } finally {
    hold.release();
  }
}

/** Null: it goes on. */
async function claimedByOwner(message: InboundMessage, hold: Hold, options: ReceiveOptions): Promise<Received | null> {
  const { bindings, dispatcher } = options;
  if (bindings === undefined) return null;
  const asked = await bindings.ask(message, options);
  switch (asked.outcome) {
    case "unbound":
    case "missing_plugin":
    case "no_handler":
      return null;
    case "aborted":
      return { end: "aborted" };
    case "declined":
    case "error": {
      hold.take();
      const { outcome, binding, notice } = asked;
      const queuedFinal = dispatcher.sendFinalReply(
        outcome === "error" ? { text: notice, isError: true } : { text: notice },
      );
      return { end: "refused", outcome, plugin: binding.pluginId, queuedFinal };
    }
    case "handled": {
      hold.take();
      const { by, dispatchId, result } = asked.run;
      const reply = replyIn(result);
      const queuedFinal = reply !== null && dispatcher.sendFinalReply(reply);
      return { end: "handled", hook: "inbound_claim", by, dispatchId, queuedFinal };
    }
  }
}

async function received(message: InboundMessage, hold: Hold, options: ReceiveOptions): Promise<Received> {
  const { runs, dispatcher, signal } = options;
  tellObservers(message, options);
  if (signal?.aborted) return { end: "aborted" };
  const run = await runs.claim(
    "before_dispatch",
    beforeDispatchEvent(message),
    beforeDispatchContext(message),
    signal === undefined ? {} : { signal },
  );
  switch (run.end) {
    case "aborted":
      return { end: "aborted" };
    case "claimed": {
      hold.take();
      const { by, dispatchId, result } = run;
      const text = textIn(result, "text");
      const queuedFinal = text !== undefined && dispatcher.sendFinalReply({ text });
      return { end: "handled", hook: "before_dispatch", by, dispatchId, queuedFinal };
    }
    case "declined":
      return dispatched(message, hold, options);
  }
}

/** An observer is not cancelled with the turn: the message did come. */
function tellObservers(message: InboundMessage, { runs, log = () => {} }: ReceiveOptions): void {
  const run = runs.notify("message_received", messageReceivedEvent(message), messageContext(message));
  run.catch((fault: unknown) => loggerFor("messages", log).error(fault));
}

async function dispatched(message: InboundMessage, hold: Hold, options: ReceiveOptions): Promise<Received> {
  const { stage, signal, log = () => {} } = options;
  const warn = loggerFor("messages", log).warn;
  const staged = stage === undefined ? message : await stageMedia(message, { stage, signal, warn });
  if (signal?.aborted) return { end: "aborted" };
  hold.take();
  return { end: "dispatch", message: staged, giveBack: () => hold.giveBack() };
}
