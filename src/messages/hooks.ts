/**
 * The message and delivery hooks, closed. How their handlers' answers compose, and what a handler that fails does, is said here and
 * nowhere else: no message hook fails closed, unless the operator wants a failed handler of a sending hook to block.
 */

type MessageHookRules = {
  /** Name of a composition of the core. */
  readonly composition: "claim" | "rewrite" | "waterfall" | "notify";
  /** ms, where neither the operator nor the handler says otherwise; null: none. */
  readonly timeoutMs: number | null;
  /** The option by which a handler says for which runs it is meant, and the values it may list. */
  readonly eligibility: Eligibility | null;
  /** May the operator set `onFailure: "block"`? */
  readonly blockable: boolean;
};

export type Eligibility = {
  readonly option: "eligibleDispatchKinds" | "eligibleTriggers";
  /** Field of the context that is looked up. */
  readonly field: "dispatchKind" | "trigger";
  readonly values: readonly string[];
  /** Does a restricted handler run where the context says nothing, or something unknown? */
  readonly withoutValue: boolean;
};

const SENDING_TIMEOUT_MS = 15_000;

export const MESSAGE_HOOKS = {
  inbound_claim: { composition: "claim", timeoutMs: null, eligibility: null, blockable: false },
  message_received: { composition: "notify", timeoutMs: null, eligibility: null, blockable: false },
  before_dispatch: { composition: "claim", timeoutMs: null, eligibility: null, blockable: false },
  reply_dispatch: {
    composition: "claim",
    timeoutMs: null,
    eligibility: {
      option: "eligibleDispatchKinds",
      field: "dispatchKind",
      values: ["acp", "agent"],
      withoutValue: true,
    },
    blockable: false,
  },
  before_agent_reply: {
    composition: "claim",
    timeoutMs: null,
    eligibility: {
      option: "eligibleTriggers",
      field: "trigger",
      values: ["user", "cron", "heartbeat"],
      withoutValue: false,
    },
    blockable: false,
  },
  reply_payload_sending: {
    composition: "waterfall",
    timeoutMs: SENDING_TIMEOUT_MS,
    eligibility: null,
    blockable: true,
  },
  message_sending: { composition: "rewrite", timeoutMs: SENDING_TIMEOUT_MS, eligibility: null, blockable: true },
  message_sent: { composition: "notify", timeoutMs: null, eligibility: null, blockable: false },
} as const satisfies Record<string, MessageHookRules>;

export type MessageHookName = keyof typeof MESSAGE_HOOKS;

export function isMessageHook(name: string): name is MessageHookName {
  return Object.hasOwn(MESSAGE_HOOKS, name);
}

export function rulesOf(hook: MessageHookName): MessageHookRules {
  return MESSAGE_HOOKS[hook];
}
