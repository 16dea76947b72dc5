/** The queue of deliveries in a ledger file: a row each. */
import { isDeepStrictEqual } from "node:util";
import type Database from "better-sqlite3";
import { HookledgerError } from "../../errors.js";
import { DELIVERY_STATES, type DeliveryState, type QueuedDelivery, type QueueFilter } from "../queue.js";
import { type Row, toInteger, toText } from "./columns.js";
import { writerStateOf } from "./liveness.js";
import type { ChangeRequest, PutRequest } from "./protocol.js";

const COLUMNS =
  "id, state, lane, idempotency_key, payload, route, session, run, attempts, parts_sent, due_at, created_at, updated_at, receipts, error, writer";
/** Sorts behind every id. */
const END = "\u{10FFFF}";

type Column = string | number | null;
type Changeable = Required<ChangeRequest["to"]> & { readonly writer: string };

/** Writes within the transaction that is open. */
export class DeliveryWriter {
  readonly #ledger: string;
  readonly #row: Database.Statement<[id: string], Row>;
  readonly #insert: Database.Statement<[values: readonly Column[]]>;
  readonly #changeable: Database.Statement<[id: string], Changeable>;
  readonly #update: Database.Statement<[Changeable & { readonly id: string }]>;

  /** `ledger`: path that tells whether a writer is alive. */
  constructor(db: Database.Database, ledger: string) {
    this.#ledger = ledger;
    this.#row = db.prepare<[id: string], Row>(`SELECT ${COLUMNS} FROM deliveries WHERE id = ?`).raw();
    this.#insert = db.prepare(
      `INSERT INTO deliveries (${COLUMNS}) VALUES (${Array.from(COLUMNS.split(","), () => "?").join(", ")})`,
    );
    this.#changeable = db.prepare(
      `SELECT state, attempts, parts_sent AS partsSent, due_at AS dueAt, updated_at AS updatedAt, receipts, error, writer
       FROM deliveries WHERE id = ?`,
    );
    this.#update = db.prepare(
      `UPDATE deliveries SET state = @state, attempts = @attempts, parts_sent = @partsSent, due_at = @dueAt,
       updated_at = @updatedAt, receipts = @receipts, error = @error, writer = @writer WHERE id = @id`,
    );
  }

  /** Returns whether anything was written. Throws HL_STORE_CONFLICT, maybe after some of them. */
  put({ deliveries, writer }: PutRequest): boolean {
    let wrote = false;
    for (const delivery of deliveries) {
      const there = this.#row.get(delivery.id);
      if (there === undefined) {
        this.#insert.run(toRow(delivery, writer));
        wrote = true;
      } else if (!this.#isSame(there, delivery, writer)) {
        throw new HookledgerError("HL_STORE_CONFLICT", `another delivery has the id ${delivery.id}`);
      }
    }
    return wrote;
  }

  /** Somebody else's attempt is another one. */
  #isSame(row: Row, delivery: QueuedDelivery, writer: string): boolean {
    const there = toDelivery(row, (begunBy) => isGone(this.#ledger, begunBy));
    return isDeepStrictEqual(there, delivery) && (delivery.state !== "attempting" || row.at(-1) === writer);
  }

  /** Returns whether it was in one of the states, and so was changed. An attempt is whose it is: nobody else says what became of it. */
  change({ id, from, to, writer }: ChangeRequest): boolean {
    const found = this.#changeable.get(id);
    if (found === undefined) return false;
    const state = stateOf(found.state, () => isGone(this.#ledger, found.writer));
    if (!from.includes(state) || (state === "attempting" && found.writer !== writer)) return false;
    const begins = to.state === "attempting" ? { writer } : {};
    this.#update.run({ ...found, ...to, ...begins, id });
    return true;
  }
}

export type DeliveryQuery = {
  readonly sql: string;
  readonly parameters: readonly string[];
  /** The delivery in this row; null if the filter does not ask for it. */
  read(row: Row): QueuedDelivery | null;
};

/** Rows by id, from an index for each state: what is done with does not slow down the search for what is not. */
export function deliveryQuery(
  ledger: string,
  { states = DELIVERY_STATES, prefix = "", after }: QueueFilter,
): DeliveryQuery {
  const wanted = new Set(states);
  const stored = new Set(states);
  if (stored.has("unknown")) stored.add("attempting");
  const behind = after === undefined ? "" : `${after}\0`;
  const range = [behind > prefix ? behind : prefix, prefix + END];
  const gone = new Map<string, boolean>();
  const isGoneOnce = (writer: string): boolean => {
    const known = gone.get(writer) ?? isGone(ledger, writer);
    gone.set(writer, known);
    return known;
  };
  const one = `SELECT ${COLUMNS} FROM deliveries WHERE state = ? AND id >= ? AND id < ?`;
  return {
    sql: `${Array.from(stored, () => one).join(" UNION ALL ")} ORDER BY id`,
    parameters: Array.from(stored).flatMap((state) => [state, ...range]),
    read: (row) => {
      const delivery = toDelivery(row, isGoneOnce);
      return wanted.has(delivery.state) ? delivery : null;
    },
  };
}

/** An attempt of somebody who is gone: nobody knows what became of it. */
function stateOf(stored: DeliveryState, isWriterGone: () => boolean): DeliveryState {
  return stored === "attempting" && isWriterGone() ? "unknown" : stored;
}

function isGone(ledger: string, writer: string): boolean {
  return writerStateOf(ledger, writer) === "dead";
}

function toRow(delivery: QueuedDelivery, writer: string): Column[] {
  const { id, state, lane, idempotencyKey, payload, route, session, run, attempts, partsSent } = delivery;
  const { dueAt, createdAt, updatedAt, receipts, error } = delivery;
  return [
    ...[id, state, lane, idempotencyKey, payload, route, session, run, attempts, partsSent],
    ...[dueAt, createdAt, updatedAt, receipts, error, writer],
  ];
}

function toDelivery(row: Row, isWriterGone: (writer: string) => boolean): QueuedDelivery {
  const [id, state, lane, idempotencyKey, payload, route, session, run, attempts, partsSent] = row;
  const [dueAt, createdAt, updatedAt, receipts, error, writer] = row.slice(10);
  return {
    id: toText(id),
    // The query asks for known states only.
    state: stateOf(toText(state) as DeliveryState, () => isWriterGone(toText(writer))),
    lane: toText(lane),
    idempotencyKey: toText(idempotencyKey),
    payload: toText(payload),
    route: toText(route),
    session: session === null ? null : toText(session),
    run: run === null ? null : toText(run),
    attempts: toInteger(attempts),
    partsSent: toInteger(partsSent),
    dueAt: toInteger(dueAt),
    createdAt: toInteger(createdAt),
    updatedAt: toInteger(updatedAt),
    receipts: toText(receipts),
    error: error === null ? null : toText(error),
  };
}
