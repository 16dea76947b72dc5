/** What passes between the store and the threads in which the client runs. Each call is answered once, in any order. */
import type { Digest } from "../../core/events.js";
import type { BlobRead } from "../../payload/archive/types.js";
import type {
  AppendRequest,
  AppendResult,
  Collected,
  CollectOptions,
  RecordedEvent,
  StreamEvents,
  StreamFilter,
  StreamHead,
  StreamName,
} from "../port.js";
import type { ServerAddress } from "./address.js";
import type { Failure } from "./failure.js";
import type { UnlistedStreams } from "./pages.js";

export type ThreadData = { readonly role: "append" | "read"; readonly address: ServerAddress };

/** By kind of call: what it takes and what it returns. Pages are empty at the end. */
export type Calls = {
  /** Has the server answered? */
  readonly ping: { readonly takes: null; readonly gives: null };
  /** `until`: ms on the clock that all threads share, see `sharedNow`. */
  readonly append: {
    readonly takes: { readonly request: AppendRequest; readonly until: number };
    readonly gives: AppendResult;
  };
  readonly stream: { readonly takes: StreamName; readonly gives: StreamEvents | null };
  readonly streams: { readonly takes: StreamFilter; readonly gives: readonly StreamEvents[] };
  readonly heads: { readonly takes: StreamFilter; readonly gives: readonly StreamHead[] };
  readonly unlisted: { readonly takes: { readonly after: number }; readonly gives: UnlistedStreams };
  readonly events: { readonly takes: { readonly after: number }; readonly gives: readonly RecordedEvent[] };
  readonly blob: { readonly takes: Digest; readonly gives: BlobRead };
  /** Waits for events behind `after`. A thread that does not know the subscription begins it there. */
  readonly news: {
    readonly takes: { readonly subscription: number; readonly after: number };
    readonly gives: readonly RecordedEvent[];
  };
  /** Ends a subscription, and with it a call that waits for its news. */
  readonly unsubscribe: { readonly takes: { readonly subscription: number }; readonly gives: null };
  readonly collect: { readonly takes: CollectOptions; readonly gives: Collected };
};

export type Kind = keyof Calls;

export type Call = {
  readonly [K in Kind]: { readonly id: number; readonly kind: K; readonly takes: Calls[K]["takes"] };
}[Kind];

export type ToThread =
  | { readonly kind: "calls"; readonly calls: readonly Call[] }
  /** Let go of the server, and end. */
  | { readonly kind: "close" };

export type Answer =
  | { readonly id: number; readonly value: Calls[Kind]["gives"] }
  | { readonly id: number; readonly failure: Failure };

export type FromThread =
  | { readonly kind: "answers"; readonly answers: readonly Answer[] }
  /** Of a collection: events read so far. */
  | { readonly kind: "progress"; readonly id: number; readonly events: number };

/** ms on a clock that does not jump and is the same in every thread. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
