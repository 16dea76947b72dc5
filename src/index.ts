/** The public API: embed a kernel, keep a ledger, prove what it says. */

export { loadConfig } from "./config/load.js";
export type { Config, ConfigResult, Diagnostic } from "./config/types.js";
export type { Category, Digest, DispatchEvent, HookError } from "./core/events.js";
export { HOOK_POINTS, type HookPoint } from "./core/points.js";
export type { HookErrorRecord, PlanItemDecision, Verdict } from "./core/result.js";
export { type Clock, systemClock } from "./dispatch/clock.js";
export type { DispatchOptions } from "./dispatch/dispatcher.js";
export { createKernel, type Kernel, type KernelOptions } from "./dispatch/kernel.js";
export type { AbortedResult, DecidedResult, DispatchResult } from "./dispatch/result.js";
export { ERROR_CODES, type ErrorCode, HookledgerError, type Place } from "./errors.js";
export type * from "./payload/messages.js";
export { type Payload, payloadFromBytes, payloadFromJson, payloadFromView, payloadToJson } from "./payload/payload.js";
export { UNKNOWN_FIELDS } from "./payload/view.js";
export { type Recovered, type RecoveryOptions, recover } from "./replay/recover.js";
export { type Replayed, replayStream } from "./replay/replay.js";
export { type Divergence, type DivergenceKind, type Verification, Verifier } from "./replay/verify.js";
export { type VerifyPart, verifyAll } from "./replay/verify-all.js";
export { type OpenStoreOptions, openStore } from "./store/open.js";
export type { EventStore, RecordedEvent, StreamEvents, StreamFilter, StreamHead, StreamName } from "./store/port.js";
export type {
  HookConfig,
  HookContext,
  HookHandlers,
  PointHandlers,
  Verdict as VetoVerdict,
} from "./subscribers/handlers.js";
export type { Logger, LogSink } from "./subscribers/log.js";
export { type Exported, type ExportOptions, type ExportSelection, exportLedger } from "./transfer/export.js";
export { type Imported, importLedger } from "./transfer/import.js";
export type { Refusal } from "./transfer/refusal.js";
