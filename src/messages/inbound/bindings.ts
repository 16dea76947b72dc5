/** Conversations that a plugin owns: it alone is asked whether it takes a message of theirs. */

import { createHash } from "node:crypto";
import { systemClock } from "../../dispatch/clock.js";
import { unlessAborted } from "../../dispatch/unless-aborted.js";
import type { MessagePlugins } from "../registry.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { ClaimRun, HookRuns } from "../runs.js";
import type { PluginBinding } from "../types.js";
import { inboundClaimContext } from "./contexts.js";
import { inboundClaimEvent } from "./events.js";
import type { InboundMessage } from "./message.js";
import { Recent } from "./recent.js";

/** What came of asking the owner. */
export type BindingOutcome = "handled" | "missing_plugin" | "no_handler" | "declined" | "error";

type Unhandled = Exclude<BindingOutcome, "handled">;

export type BindingsOptions = {
  /** Who owns the message's conversation; null: nobody. */
  readonly ownerOf: (message: InboundMessage) => PluginBinding | null | PromiseLike<PluginBinding | null>;
  readonly plugins: Pick<MessagePlugins, "isLoaded">;
  /** What the conversation is told where its owner did not handle a message. */
  readonly noticeOf?: (outcome: Unhandled, binding: PluginBinding) => string;
  /** Conversations that are remembered to have been told that their owner is away, 5 000 by default. */
  readonly entries?: number;
};

export type AskOptions = {
  readonly runs: Pick<HookRuns, "claim">;
  readonly dispatcher: ReplyDispatcher;
  readonly signal?: AbortSignal | undefined;
};

export type Asked =
  | { readonly outcome: "unbound" }
  | { readonly outcome: "aborted" }
  | { readonly outcome: "handled"; readonly run: Extract<ClaimRun<"inbound_claim">, { end: "claimed" }> }
  /** The conversation is told by a final reply. */
  | { readonly outcome: "declined" | "error"; readonly binding: PluginBinding; readonly notice: string }
  /** The conversation was told, or had been. */
  | { readonly outcome: "missing_plugin" | "no_handler"; readonly binding: PluginBinding };

const ENTRIES = 5_000;

export class ConversationBindings {
  readonly #options: BindingsOptions;
  readonly #told: Recent<true>;

  constructor(options: BindingsOptions) {
    this.#options = options;
    const { entries = ENTRIES } = options;
    this.#told = new Recent({ entries, ms: Number.POSITIVE_INFINITY }, systemClock.now);
  }

  /** Rejects with what `ownerOf` throws. */
  async ask(message: InboundMessage, { runs, dispatcher, signal }: AskOptions): Promise<Asked> {
    const { ownerOf, plugins, noticeOf = defaultNotice } = this.#options;
    const binding = await unlessAborted(ownerOf(message), signal);
    if (binding === "aborted") return { outcome: "aborted" };
    if (binding === null) return { outcome: "unbound" };
    const { pluginId } = binding;
    const run = await runs.claim("inbound_claim", inboundClaimEvent(message), inboundClaimContext(message, binding), {
      onlyPlugin: pluginId,
      ...(signal === undefined ? {} : { signal }),
    });
    switch (run.end) {
      case "aborted":
        return { outcome: "aborted" };
      case "claimed":
        return { outcome: "handled", run };
      case "declined": {
        if (signal?.aborted) return { outcome: "aborted" };
        if (run.dispatchId === null) {
          const outcome = plugins.isLoaded(pluginId) ? "no_handler" : "missing_plugin";
          this.#tellOnce(message, binding, dispatcher, noticeOf(outcome, binding));
          return { outcome, binding };
        }
        const outcome = run.failures.length === 0 ? "declined" : "error";
        return { outcome, binding, notice: noticeOf(outcome, binding) };
      }
    }
  }

  /** Once a conversation and owner, and beside the answer that is still to come: hence no final. */
  #tellOnce(message: InboundMessage, { pluginId }: PluginBinding, dispatcher: ReplyDispatcher, text: string): void {
    const { channelId, accountId = "", conversationId = "" } = message;
    const identity = JSON.stringify([channelId, accountId, conversationId, pluginId]);
    const key = createHash("sha256").update(identity).digest("base64");
    if (this.#told.get(key) === undefined && dispatcher.sendToolResult({ text })) this.#told.set(key, true);
  }
}

function defaultNotice(outcome: Unhandled, { pluginId }: PluginBinding): string {
  switch (outcome) {
    case "missing_plugin":
    case "no_handler":
      return `This conversation belongs to the plugin "${pluginId}", which is not available. The agent answers instead.`;
    case "declined":
      return `This conversation belongs to the plugin "${pluginId}", which did not take the message.`;
    case "error":
      return `This conversation belongs to the plugin "${pluginId}", which failed on the message.`;
  }
}
