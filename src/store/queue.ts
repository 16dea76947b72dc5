/** Deliveries in durable custody: what is to be sent, what was tried, and what became of it. */

/**
 * `pending`: to be sent from `dueAt` on. `attempting`: an attempt has begun, and what became of it is not recorded; while nobody works on
 * it that is `unknown`: it may have been sent, and is never sent again by itself. `sent`, `failed` and `dropped` are final.
 */
export type DeliveryState = "pending" | "attempting" | "unknown" | "sent" | "failed" | "dropped";

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
  readonly states?: readonly DeliveryState[];
  /** Ids that start with this (upper case). */
  readonly prefix?: string;
  /** Go on behind this id. */
  readonly after?: string;
  readonly limit?: number;
};

/**
 * Kept by a SQLite store, in the order and in the transactions of its appends: a barrier of either makes durable what came before of both.
 * Errors as the store's.
 */
export interface DeliveryQueue {
  /** All or nothing. `barrier`: resolve once it, and everything that this store was given before, is durable. */
  put(deliveries: readonly QueuedDelivery[], barrier: boolean): Promise<void>;
  /** false: it is not in one of the states, or there is none; nothing was changed. */
  change(id: string, from: readonly DeliveryState[], change: DeliveryChange, barrier: boolean): Promise<boolean>;
  /** Oldest first. */
  deliveries(filter: QueueFilter): Promise<readonly QueuedDelivery[]>;
}
