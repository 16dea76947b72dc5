/** `hookledger/messages`: hooks of a chat gateway on the kernel's machine and ledger. */

export type { DeliveryQueue, DeliveryState, QueuedDelivery } from "../store/queue.js";
export { queueOf } from "../store/queue-of.js";
export { mayAdmitDurably } from "./agent/admission.js";
export {
  AgentReplies,
  type AgentRepliesOptions,
  type AgentReply,
  type AgentReplyOptions,
} from "./agent/agent-replies.js";
export { ReplyTurn, type ReplyTurnOptions, type Takeover } from "./agent/reply-turn.js";
export { type DispatchTarget, dispatchKindOf, type SessionTarget } from "./agent/target.js";
export { createMessageHooks, type MessageHooks, type MessageHooksOptions } from "./create.js";
export { type DurableDeliveries, type DurableOptions, openDurableDeliveries } from "./durable/deliveries.js";
export type { ChannelAddress } from "./durable/entry.js";
export { type NotSentDetails, NotSentError } from "./durable/not-sent.js";
export type { RetryPolicy } from "./durable/retry.js";
export type * from "./facts.js";
export { createGateway, type Gateway } from "./gateway/create.js";
export type * from "./gateway/options.js";
export type * from "./gateway/outcome.js";
export type { SessionLimits } from "./gateway/sessions.js";
export type { Transcripts } from "./gateway/turn-transcript.js";
export { MESSAGE_HOOKS, type MessageHookName } from "./hooks.js";
export { type BindingOutcome, type BindingsOptions, ConversationBindings } from "./inbound/bindings.js";
export { finalizedContext, messageContext } from "./inbound/contexts.js";
export { type DedupeOptions, InboundDedupe } from "./inbound/dedupe.js";
export type { Attachments } from "./inbound/media.js";
export type { InboundMessage, Quote } from "./inbound/message.js";
export { type InboundHost, type Received, type ReceiveOptions, receiveMessage } from "./inbound/receive.js";
export { type StagedMedia, type Stager, stageMedia } from "./inbound/staging.js";
export type { OperatorOptions } from "./operator.js";
export type * from "./outbound/adapter.js";
export { deliver, deliverDirect } from "./outbound/deliver.js";
export { createReplyDispatcher, type ReplyDispatcherOptions } from "./outbound/dispatcher.js";
export type { DeliveryFailure } from "./outbound/failure.js";
export type { HookEffect } from "./outbound/hook-effect.js";
export type { DeliverOptions, DeliveryWarning } from "./outbound/options.js";
export type * from "./outbound/outcome.js";
export { SILENT_REPLY } from "./outbound/payload.js";
export { UsageStates } from "./outbound/usage-states.js";
export { definePlugin, type HandlerOptions, type MessagePlugin, type PluginApi } from "./plugin.js";
export type { MessagePlugins } from "./registry.js";
export type { DispatchReceipt, LaneCounts, ReplyDispatcher } from "./reply-dispatcher.js";
export type * from "./runs.js";
export { ACP_ONLY, type AcpReplyDispatchOptions, type AcpTurn, createAcpReplyDispatch } from "./turn/acp.js";
export { type Ingress, isInputRetryable, type TurnAdoption } from "./turn/adoption.js";
export {
  type AssistantPreparerOptions,
  type AssistantTurn,
  assistantPreparer,
  type Displayed,
  type DisplayOwnership,
  type PrepareAssistantTranscriptMessage,
  persistAssistantTurn,
} from "./turn/assistant.js";
export {
  type ChatCompletion,
  type DeliveredReply,
  ReplyCompletion,
  type ReplyCompletionOptions,
  type RuntimeEvent,
} from "./turn/completion.js";
export { type TurnCustody, turnCustodyOf } from "./turn/forwarded.js";
export { type TurnEnd, TurnLife } from "./turn/life.js";
export {
  announceRunStart,
  type OnAgentRunStart,
  type OnPreparedAgentRunStart,
  observingRunStart,
  type PreparedRunStart,
  type RunResult,
  type RunStartCallbacks,
  type RunStartOptions,
} from "./turn/run-start.js";
export { SqliteTranscripts } from "./turn/sqlite-transcripts.js";
export type * from "./turn/transcript.js";
export { type UserTurnOptions, UserTurnRecorder, type UserTurnTranscriptRecorder } from "./turn/user-turn.js";
export { StartupWatchdog, type WatchdogOptions } from "./turn/watchdog.js";
export type * from "./types.js";
