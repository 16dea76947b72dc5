/**
 * The record of a dispatch. Six event types, closed: an unknown key, type, class, cause or flag never reaches the machine.
 * `data` of the ledger's events has exactly these shapes; everything a machine must not read lives in the metadata.
 */

/** Lower-case hex SHA-256 over `hookledger/<domain>/v1\0` and the bytes. Opaque to the machine. */
export type Digest = `sha256:${string}`;

/** A payload, by content. `size` in bytes. The machine compares digests and reads nothing. */
export type Ref = { readonly digest: Digest; readonly size: number; readonly encoding: "proto" | "json" };

/** How a hook block subscribes. */
export type HookMode = "observe" | "transform" | "veto";
export type Mode = HookMode | "policy" | "handler";
export type ObserveConcurrency = "concurrent" | "sequential" | "detached";
export type Category =
  | "TRANSFORM_FAILED"
  | "VETO_FAILED"
  | "TIMEOUT"
  | "INVALID_RESPONSE"
  | "PROCESS_CRASHED"
  | "UNKNOWN";

/** `message`: at most 2 048 characters, controls escaped. */
export type HookError = { readonly category: Category; readonly message: string };

export type Producer = {
  readonly name: string;
  readonly version?: string;
  readonly source: string;
  readonly category?: string;
  readonly digest?: Digest;
};

/** One link of the resolved, frozen chain. `skip` says why it is listed and not called; `shadow`: called, never counted. */
export type Subscriber = {
  readonly index: number;
  readonly id: string;
  readonly provider: string;
  readonly mode: Mode;
  /** ms; null only where a composition allows a handler without a deadline. */
  readonly timeoutMs: number | null;
  readonly subscriptionId?: string;
  readonly skip?: string;
  readonly shadow?: true;
  readonly producer: Producer;
};

export type ItemDecision = "allow" | "ask" | "deny";
/** What policy said of one plan item. `decidedBy`: `policy:<rule>`, `policy:default`, or who had denied it before. */
export type PolicyItem = {
  readonly itemId: string;
  readonly decision: ItemDecision;
  readonly decidedBy: string;
  readonly reason?: string;
};

export type Started = {
  readonly type: "started";
  readonly dispatchId: string;
  readonly point: string;
  readonly composition: string;
  readonly reducerVersion: number;
  readonly flags: readonly string[];
  readonly vetoBearing: boolean;
  readonly observe: ObserveConcurrency;
  /** ms for the whole chain, or null. */
  readonly budgetMs: number | null;
  readonly subscribers: readonly Subscriber[];
  readonly configDigest: Digest;
  readonly descriptorDigest: Digest;
  readonly input: Ref;
};

export type SubscriberInvoked = {
  readonly type: "subscriber-invoked";
  readonly index: number;
  /** Digest of the payload this subscriber was given. */
  readonly saw: Digest;
};

type OutcomeBase = { readonly type: "outcome"; readonly index: number; readonly warnings?: readonly string[] };
export type Outcome = OutcomeBase &
  (
    | { readonly class: "ack" }
    | { readonly class: "transformed"; readonly payload: Ref }
    | { readonly class: "allow" }
    | { readonly class: "deny"; readonly reason?: string }
    | { readonly class: "policy"; readonly payload: Ref; readonly items: readonly PolicyItem[] }
    | { readonly class: "claimed"; readonly payload: Ref }
    | { readonly class: "declined" }
    | { readonly class: "rewritten"; readonly payload?: Ref; readonly set?: RewriteSet }
    | { readonly class: "cancelled"; readonly reason?: string; readonly payload?: Ref; readonly set?: RewriteSet }
    | { readonly class: "failed"; readonly error: HookError }
    | { readonly class: "invalid"; readonly error: HookError }
    | { readonly class: "lost" }
  );
export type OutcomeClass = Outcome["class"];
export type RewriteSet = { readonly content?: Ref; readonly cancelReason?: Ref; readonly metadata?: Ref };

export type TimedOut = {
  readonly type: "timeout";
  readonly index: number;
  /** ms that the call was given: the subscriber's own timeout, or what was left of the chain budget. */
  readonly budgetMs: number;
};

export type AbortCause = "hook_error" | "cancelled" | "store_unavailable" | "unconfirmed" | "recovered";
export type Aborted = {
  readonly type: "aborted";
  readonly cause: AbortCause;
  /** The subscriber that failed; only for `hook_error`. */
  readonly index?: number;
  readonly error?: HookError;
  /** Who was called and had not settled, ascending; absent when nobody was. */
  readonly inFlight?: readonly number[];
};

export type Decided = {
  readonly type: "decided";
  readonly decision: "allow" | "deny";
  /** A subscriber id, `kernel:policy`, or `kernel:default` (nobody objected). */
  readonly decidedBy: string;
  readonly payload: Digest;
};

export type DispatchEvent = Started | SubscriberInvoked | Outcome | TimedOut | Aborted | Decided;
export type EventType = DispatchEvent["type"];
/** What settles a call. */
export type Settlement = Outcome | TimedOut;
