/** Plugins, their hooks and a ledger, ready for a gateway. */

import type { Meter, Tracer } from "@opentelemetry/api";
import { type Clock, systemClock } from "../dispatch/clock.js";
import { STORE_TIMEOUT_MS } from "../dispatch/patient-store.js";
import { StartRecovery } from "../dispatch/start-recovery.js";
import { telemetry } from "../dispatch/telemetry.js";
import { HookledgerError } from "../errors.js";
import { createRedactor } from "../payload/redaction.js";
import { openStore } from "../store/open.js";
import type { EventStore } from "../store/port.js";
import type { LogSink } from "../subscribers/log.js";
import { hostLog } from "./host-log.js";
import { aliasDress } from "./inbound/aliases.js";
import { type OperatorOptions, operatorOptions } from "./operator.js";
import type { MessagePlugin } from "./plugin.js";
import { RecordedRuns } from "./recorded-runs.js";
import { MessagePlugins } from "./registry.js";
import type { HookRuns } from "./runs.js";

export type MessageHooksOptions = {
  /** An open store, which stays the caller's, or a URL as the kernel takes it. */
  readonly store: EventStore | string;
  readonly plugins?: readonly MessagePlugin[];
  /** What the operator says of all handlers. */
  readonly hooks?: OperatorOptions;
  /** RE2 patterns; what they match is recorded and logged as `[redacted]`. */
  readonly redact?: readonly string[];
  /** Literal texts, of 6 characters and more, that are kept out the same way. */
  readonly secrets?: readonly string[];
  /** Where plugins' mistakes and failures are told, redacted; nowhere by default. */
  readonly log?: LogSink;
  readonly clock?: Clock;
  readonly tracer?: Tracer;
  readonly meter?: Meter;
  /** A fresh ULID for a run. */
  readonly newId?: () => string;
  /** ms that the ledger is waited for, 30 000 by default. */
  readonly storeTimeoutMs?: number;
  /** ms that `close` waits for runs under way, 30 000 by default: a handler without a deadline may never end. */
  readonly closeTimeoutMs?: number;
  /** true by default: closes in the background what crashed hosts and kernels left open, and never lets anything pass. */
  readonly recoverOnStart?: boolean;
};

export type MessageHooks = {
  readonly plugins: MessagePlugins;
  readonly runs: HookRuns;
  /** Ids of the dispatches that this start has closed after a crash, once it has looked for them. Never rejects. */
  readonly recovered: Promise<readonly string[]>;
  /** Waits for runs under way; then lets go of what it has opened. Idempotent. */
  readonly close: () => Promise<void>;
};

const STORE_HINT = "Give `store` a URL, for example sqlite:.hookledger/ledger.db or memory:, or an open store.";

/** Throws HL_PLUGIN, HL_CONFIG (no store, an invalid pattern or `hooks`) and HL_STORE_…; nothing is left open then. */
export async function createMessageHooks(options: MessageHooksOptions): Promise<MessageHooks> {
  const { log = () => {}, clock, newId, storeTimeoutMs } = options;
  const hooks = operatorOptions(options.hooks ?? {});
  const redactor = createRedactor({ patterns: options.redact ?? [], secrets: options.secrets ?? [] });
  const redacted = hostLog(log, redactor);
  const plugins = new MessagePlugins(redacted);
  for (const plugin of options.plugins ?? []) plugins.load(plugin);
  const { store: given } = options;
  if (!given) throw new HookledgerError("HL_CONFIG", "there is no store", { hint: STORE_HINT });
  const store = typeof given === "string" ? await openStore(given, { mode: "write" }) : given;
  const runs = new RecordedRuns({
    plugins,
    store,
    redactor,
    log: redacted,
    dress: aliasDress(redacted),
    telemetry: telemetry(options.tracer, options.meter),
    hooks,
    ...(clock === undefined ? {} : { clock }),
    ...(newId === undefined ? {} : { newId }),
    ...(storeTimeoutMs === undefined ? {} : { storeTimeoutMs }),
  });
  const recovery =
    options.recoverOnStart === false
      ? null
      : new StartRecovery(store, clock ?? systemClock, storeTimeoutMs ?? STORE_TIMEOUT_MS, redacted);
  let closed: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await recovery?.stop();
    await runs.idle(options.closeTimeoutMs);
    if (typeof given === "string") await store.close();
  };
  return {
    plugins,
    runs,
    recovered: recovery?.done ?? Promise.resolve([]),
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
