/** Which messages were taken already. Channels deliver again what they are not sure of; nobody is to be answered twice. */

import { createHash } from "node:crypto";
import { systemClock } from "../../dispatch/clock.js";
import type { InboundMessage } from "./message.js";
import { Recent } from "./recent.js";

export type DedupeOptions = {
  /** Taken messages that are remembered, 5 000 by default. */
  readonly entries?: number;
  /** ms for which each is, 20 minutes by default. */
  readonly ms?: number;
  /** Monotonic ms. */
  readonly now?: () => number;
};

/** One delivery's hold on its message; everybody else who has the same message waits for what becomes of it. */
export interface Hold {
  /** It is under way, and must not come again: whoever waits has a duplicate. */
  take(): void;
  /** Nothing became of it: whoever has waited longest is next. Nothing after `take`. */
  release(): void;
  /** It was taken, and can be said not to have been begun after all: it may come again. */
  giveBack(): void;
}

const ENTRIES = 5_000;
const MS = 20 * 60_000;

/** Unbounded are only messages that are held: each is a call of the host's that is under way. */
export class InboundDedupe {
  readonly #taken: Recent<Hold>;
  /** Those who wait for a held message, first come first served. */
  readonly #held = new Map<string, Set<(hold: Hold | "duplicate") => void>>();

  constructor({ entries = ENTRIES, ms = MS, now = systemClock.now }: DedupeOptions = {}) {
    this.#taken = new Recent({ entries, ms }, now);
  }

  /** `key`: null where a message cannot be told from others, which is never a duplicate. Resolves "aborted" with the signal. */
  async hold(key: string | null, signal?: AbortSignal): Promise<Hold | "duplicate" | "aborted"> {
    if (signal?.aborted) return "aborted";
    if (key === null) return UNKNOWN;
    if (this.#taken.get(key) !== undefined) return "duplicate";
    const waiting = this.#held.get(key);
    if (waiting !== undefined) return waitIn(waiting, signal);
    this.#held.set(key, new Set());
    return this.#holdOn(key);
  }

  #holdOn(key: string): Hold {
    let state: "held" | "taken" | "over" = "held";
    const hold: Hold = {
      take: () => {
        if (state !== "held") return;
        state = "taken";
        this.#taken.set(key, hold);
        const waiting = this.#held.get(key);
        this.#held.delete(key);
        for (const tell of waiting ?? []) tell("duplicate");
      },
      release: () => {
        if (state !== "held") return;
        state = "over";
        const [next] = this.#held.get(key) ?? [];
        if (next === undefined) this.#held.delete(key);
        else next(this.#holdOn(key));
      },
      giveBack: () => {
        if (state !== "taken") return;
        state = "over";
        if (this.#taken.get(key) === hold) this.#taken.delete(key);
      },
    };
    return hold;
  }
}

const UNKNOWN: Hold = { take() {}, release() {}, giveBack() {} };

/** Whoever is told leaves the queue; so does whoever is aborted first. */
function waitIn(
  waiting: Set<(hold: Hold | "duplicate") => void>,
  signal: AbortSignal | undefined,
): Promise<Hold | "duplicate" | "aborted"> {
  return new Promise((resolve) => {
    const leave = (): void => {
      waiting.delete(tell);
      signal?.removeEventListener("abort", abort);
    };
    const tell = (hold: Hold | "duplicate"): void => {
      leave();
      resolve(hold);
    };
    const abort = (): void => {
      leave();
      resolve("aborted");
    };
    waiting.add(tell);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * Channel, account, conversation and message id, and the time of the edit where the provider tells of one: an edited message is
 * another. Null without a message id. A digest: ids are the sender's, and may be long.
 */
export function dedupeKey(message: InboundMessage): string | null {
  const { channelId, accountId = "", conversationId = "", messageId = "", providerUpdate } = message;
  if (messageId === "") return null;
  const edited = providerUpdate?.editedTimestamp ?? null;
  const identity = JSON.stringify([channelId, accountId, conversationId, messageId, edited]);
  return createHash("sha256").update(identity).digest("base64");
}
