/** What a queue takes: deliveries and changes of the right kind and size, as copies of its own. */
import { HookledgerError } from "../errors.js";
import { DELIVERY_STATES, type DeliveryChange, type DeliveryState, type QueuedDelivery } from "./queue.js";
import { isUlid } from "./ulid.js";

/** Bytes of a delivery's payload and route together, as UTF-8. */
export const MAX_DELIVERY_BYTES = 1024 * 1024;
/** Bytes of its other texts together: lane, key, session, run, receipts and error. */
export const MAX_DELIVERY_NOTE_BYTES = 256 * 1024;

const STATES: ReadonlySet<unknown> = new Set(DELIVERY_STATES);

/** Throws HL_LIMIT_DELIVERY and HL_USAGE. */
export function checkedDelivery(given: QueuedDelivery): QueuedDelivery {
  const { lane, idempotencyKey, payload, route, session, run } = given;
  const delivery: QueuedDelivery = {
    id: checkedId(given.id),
    state: checkedState(given.state),
    lane: text(lane, "lane"),
    idempotencyKey: text(idempotencyKey, "idempotencyKey"),
    payload: text(payload, "payload"),
    route: text(route, "route"),
    session: session === null ? null : text(session, "session"),
    run: run === null ? null : text(run, "run"),
    attempts: whole(given.attempts, "attempts"),
    partsSent: whole(given.partsSent, "partsSent"),
    dueAt: whole(given.dueAt, "dueAt"),
    createdAt: whole(given.createdAt, "createdAt"),
    updatedAt: whole(given.updatedAt, "updatedAt"),
    receipts: text(given.receipts, "receipts"),
    error: errorText(given.error),
  };
  within(MAX_DELIVERY_BYTES, "payload and route", [payload, route]);
  within(MAX_DELIVERY_NOTE_BYTES, "other texts", [
    lane,
    idempotencyKey,
    session ?? "",
    run ?? "",
    delivery.receipts,
    delivery.error ?? "",
  ]);
  return delivery;
}

export function checkedId(id: string): string {
  if (isUlid(id)) return id;
  throw unusable("an id that is no ULID");
}

export function checkedState(state: DeliveryState): DeliveryState {
  if (STATES.has(state)) return state;
  throw unusable("a state that nobody knows");
}

/** Without what it leaves as it is. Throws HL_LIMIT_DELIVERY and HL_USAGE. */
export function checkedChange(given: DeliveryChange): DeliveryChange {
  const { attempts, partsSent, dueAt, updatedAt, receipts, error } = given;
  within(MAX_DELIVERY_NOTE_BYTES, "receipts and error", [receipts ?? "", error ?? ""]);
  return {
    ...(given.state === undefined ? {} : { state: checkedState(given.state) }),
    ...(attempts === undefined ? {} : { attempts: whole(attempts, "attempts") }),
    ...(partsSent === undefined ? {} : { partsSent: whole(partsSent, "partsSent") }),
    ...(dueAt === undefined ? {} : { dueAt: whole(dueAt, "dueAt") }),
    ...(updatedAt === undefined ? {} : { updatedAt: whole(updatedAt, "updatedAt") }),
    ...(receipts === undefined ? {} : { receipts: text(receipts, "receipts") }),
    ...(error === undefined ? {} : { error: errorText(error) }),
  };
}

/** Of what is asked for, in UTF-16 units: near enough for a bound of what waits. */
export function deliveryLength(delivery: Partial<QueuedDelivery>): number {
  let length = 0;
  for (const value of Object.values(delivery)) length += typeof value === "string" ? value.length : 8;
  return length;
}

function whole(value: number, name: string): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw unusable(`${name} that is no whole number`);
}

function text(value: string, name: string): string {
  if (typeof value !== "string") throw unusable(`${name} that is no text`);
  if (value.isWellFormed()) return value;
  throw unusable(`${name} with a lone surrogate`);
}

/** What somebody else threw is not refused for how it is written. */
function errorText(value: string | null): string | null {
  return value === null ? null : text(value.toWellFormed(), "error");
}

function within(bound: number, what: string, texts: readonly string[]): void {
  let bytes = 0;
  for (const one of texts) bytes += Buffer.byteLength(one);
  if (bytes <= bound) return;
  throw new HookledgerError("HL_LIMIT_DELIVERY", `a delivery's ${what} are larger than ${bound} bytes together`, {
    hint: "Send less at once, or refer to large media by path or URL.",
  });
}

function unusable(what: string): HookledgerError {
  return new HookledgerError("HL_USAGE", `a delivery has ${what}`);
}
