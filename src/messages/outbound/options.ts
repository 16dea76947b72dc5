/** How payloads are delivered. */

import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../../dispatch/clock.js";
import type { ReplyKind } from "../facts.js";
import { known } from "../inbound/known.js";
import { tell } from "../listener.js";
import type { HookRuns } from "../runs.js";
import type { Route } from "./adapter.js";
import type { UsageStates } from "./usage-states.js";

/** Nothing that changes what became of a delivery. */
export type DeliveryWarning =
  /** A handler cancelled with more metadata than fits; `bytes` of canonical JSON. */
  | { readonly kind: "cancel-metadata-truncated"; readonly by: string; readonly bytes: number }
  /** Nobody was told by `message_sent`, through a fault of ours. */
  | { readonly kind: "message-sent-lost"; readonly message: string }
  /** The host's own listener threw. */
  | { readonly kind: "listener-failed"; readonly message: string };

export type DeliverOptions = {
  readonly runs: HookRuns;
  readonly route: Route;
  /** `final` by default. */
  readonly kind?: ReplyKind;
  /** The turn's; looked at again after every hook, every stage and every part. */
  readonly signal?: AbortSignal;
  /** Without it, no handler is told of usage. */
  readonly usage?: UsageStates;
  /** In durable custody: handlers are not told of usage, which may not be the turn's any more. */
  readonly durable?: boolean;
  /** true: no hook's record is waited for. For whoever waits for a later barrier of the same ledger before sending. */
  readonly deferred?: boolean;
  /** Of this delivery; payloads and parts get keys of their own from it. Fresh by default: whoever tries again passes the same. */
  readonly idempotencyKey?: string;
  readonly clock?: Clock;
  readonly onWarning?: (warning: DeliveryWarning) => void;
};

/** Of one payload, complete. */
export type Delivery = {
  readonly runs: HookRuns;
  readonly route: Route;
  readonly kind: ReplyKind;
  readonly signal: AbortSignal | undefined;
  readonly usage: UsageStates | undefined;
  readonly deferred: boolean;
  readonly idempotencyKey: string;
  readonly clock: Clock;
  readonly warn: (warning: DeliveryWarning) => void;
};

/** Of the n-th payload under one set of options. */
export function deliveries(options: DeliverOptions): (n: number, kind?: ReplyKind) => Delivery {
  const { runs, signal, usage, durable = false, deferred = false, clock = systemClock, onWarning } = options;
  const route: Route = { ...options.route, context: known(options.route.context) };
  const key = options.idempotencyKey ?? randomUUID();
  const warn = (warning: DeliveryWarning): void => tell(onWarning, warning);
  return (n, kind = options.kind ?? "final") => ({
    runs,
    route,
    kind,
    signal,
    usage: durable ? undefined : usage,
    deferred,
    idempotencyKey: `${key}:${n}`,
    clock,
    warn,
  });
}
