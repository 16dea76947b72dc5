/** Deliveries in durable custody: what is to be sent, what was tried, and what became of it. */

/**
 * `pending`: to be sent from `dueAt` on. `attempting`: an attempt has begun, and what became of it is not recorded; once the store that
 * it was begun through has ended (closed, or its process gone) that is `unknown`, to `deliveries` and to `change` alike, also where nobody
 * has written so: it may have been sent, and is never sent again by itself. `sent`, `failed` and `dropped` are final.
 */
export const DELIVERY_STATES = ["pending", "attempting", "unknown", "sent", "failed", "dropped"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export type QueuedDelivery = {
  /** ULID: the order of the queue. */
  readonly id: string;
  readonly state: DeliveryState;
  /** Of one lane, one at a time, in the order of their ids. */
  readonly lane: string;
  /** What a channel tells repetitions by; each part's is made of it. */
  readonly idempotencyKey: string;
  /** JSON: the payload as the hooks left it. */
  readonly payload: string;
  /** JSON: where it goes, and what is told of it afterwards. */
  readonly route: string;
  readonly session: string | null;
  readonly run: string | null;
  /** Attempts begun. */
  readonly attempts: number;
  /** Parts that the channel has acknowledged: the next attempt goes on behind them. */
  readonly partsSent: number;
  /** Wall clock, ms since 1970; so are the others. */
  readonly dueAt: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** JSON list of the channel's receipts. */
  readonly receipts: string;
  /** Of the last attempt that failed: one bounded line. */
  readonly error: string | null;
};

/** What a change sets; the rest stays. */
export type DeliveryChange = Partial<
  Pick<QueuedDelivery, "state" | "attempts" | "partsSent" | "dueAt" | "updatedAt" | "receipts" | "error">
>;

export type QueueFilter = {
  /** Default: any. */
  readonly states?: readonly DeliveryState[];
  /** Ids that start with this (upper case). */
  readonly prefix?: string;
  /** Go on behind this id. */
  readonly after?: string;
  /** At most so many, 256 by default. Large ones come in smaller pages, so that only an empty answer is the end. */
  readonly limit?: number;
};

/**
 * Kept by a SQLite store, in the order and in the transactions of its appends: a barrier of either makes durable what came before of both.
 * Errors as the store's; HL_LIMIT_DELIVERY for what is too large, HL_USAGE for what is none (an id that is no ULID, a time that is no whole
 * number, a text with a lone surrogate).
 */
export interface DeliveryQueue {
  /**
   * All or nothing. `barrier`: resolve once it, and everything that this store was given before, is durable. HL_STORE_CONFLICT if an id is
   * there with anything else in it: after HL_STORE_AMBIGUOUS the identical call may be repeated.
   */
  put(deliveries: readonly QueuedDelivery[], barrier: boolean): Promise<void>;
  /**
   * false: it is not in one of the states, there is none, or it is an attempt that another store has begun; nothing was changed. After
   * HL_STORE_AMBIGUOUS only reading it tells whether it was. `barrier` as for `put`, whatever the answer.
   */
  change(id: string, from: readonly DeliveryState[], change: DeliveryChange, barrier: boolean): Promise<boolean>;
  /** Oldest first. */
  deliveries(filter: QueueFilter): Promise<readonly QueuedDelivery[]>;
}
