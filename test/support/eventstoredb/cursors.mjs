// @ts-check
/** Where a subscription stands, in a stream or in `$all`. Starts are exclusive. */
/** @import { Filter, Recorded } from "./types.js" */
/** @import { EventLog } from "./log.mjs" */

/**
 * @typedef {{ readonly kind: "event", readonly event: Recorded }
 *   | { readonly kind: "checkpoint", readonly position: number }
 *   | { readonly kind: "deleted" }} Item
 * @typedef {{ next(): Item | null, waiting(max: number): number }} Cursor null: at the end, for now; waiting: events ahead, up to `max`
 */

const PAGE = 64;

/** @implements {Cursor} */
export class StreamCursor {
  #log;
  #stream;
  #next;
  /** @type {Recorded[]} */
  #page = [];

  /**
   * @param {EventLog} log
   * @param {string} stream
   * @param {number | "start" | "end"} after
   */
  constructor(log, stream, after) {
    this.#log = log;
    this.#stream = stream;
    this.#next = after === "start" ? 0 : (after === "end" ? log.last(stream) : after) + 1;
  }

  /** @returns {Item | null} */
  next() {
    if (this.#page.length === 0) {
      const read = this.#ahead(PAGE);
      if (read.kind === "deleted") return { kind: "deleted" };
      this.#page = read.kind === "events" ? [...read.events] : [];
    }
    const event = this.#page.shift();
    if (event === undefined) return null;
    this.#next = event.revision + 1;
    return { kind: "event", event };
  }

  /** @param {number} max */
  waiting(max) {
    const read = this.#ahead(max);
    return read.kind === "events" ? read.events.length : 0;
  }

  /** @param {number} max */
  #ahead(max) {
    return this.#log.readStream(this.#stream, { direction: "forwards", from: this.#next, max });
  }
}

/** @implements {Cursor} */
export class AllCursor {
  #log;
  #filter;
  #index;
  #considered = 0;
  /** Position of a checkpoint that is due. @type {number | null} */
  #due = null;

  /**
   * @param {EventLog} log
   * @param {number | "start" | "end"} after
   * @param {Filter | null} filter
   */
  constructor(log, after, filter) {
    this.#log = log;
    this.#filter = filter;
    this.#index = after === "start" ? 0 : after === "end" ? log.length : log.indexOf(after + 1);
  }

  /** @returns {Item | null} */
  next() {
    if (this.#due !== null) {
      const position = this.#due;
      this.#due = null;
      return { kind: "checkpoint", position };
    }
    for (let event = this.#log.at(this.#index); event !== undefined; event = this.#log.at(this.#index)) {
      this.#consider(event);
      if (isLetThrough(this.#filter, event)) return { kind: "event", event };
      if (this.#due !== null) return this.next();
    }
    return null;
  }

  /** Goes behind an event; a checkpoint that this makes due goes out behind it. @param {Recorded} event */
  #consider(event) {
    this.#index += 1;
    if (this.#filter === null) return;
    this.#considered += 1;
    if (this.#considered < this.#filter.checkpointEvery) return;
    this.#considered = 0;
    this.#due = event.position;
  }

  /** @param {number} max */
  waiting(max) {
    let count = 0;
    for (let at = this.#index; at < this.#log.length && count < max; at += 1) {
      if (isLetThrough(this.#filter, /** @type {Recorded} */ (this.#log.at(at)))) count += 1;
    }
    return count;
  }
}

/**
 * @param {Filter | null} filter
 * @param {Recorded} event
 */
export function isLetThrough(filter, event) {
  return filter === null || filter.test(filter.on === "stream" ? event.stream : event.type);
}
