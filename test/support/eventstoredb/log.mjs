// @ts-check
/** @import { Appended, Decision, Expected, Proposed, Recorded, Removed, StreamRange, StreamRead } from "./types.js" */
/** @import { Retention } from "./retention.mjs" */
import { randomUUID } from "node:crypto";
import { DELETED, isShown, retentionOf, SOFT_DELETED, truncatedAt } from "./retention.mjs";
import { decide } from "./rules.mjs";

const NOTHING = new Uint8Array();
/** Bytes of a record beside its texts: makes positions ascend without being dense. */
const RECORD_OVERHEAD = 96;

/**
 * The log of an EventStoreDB, in memory: every event in order, and who may append what. No network here.
 * It begins with an event of the system, as a real one does.
 */
export class EventLog {
  /** @type {Recorded[]} */
  #all = [];
  #end = 0;
  /** @type {Map<string, { events: Recorded[], tombstoned: boolean, retention: Retention }>} */
  #streams = new Map();
  /** @type {Map<string, { stream: string, revision: number }>} */
  #ids = new Map();
  /** @type {Set<() => void>} */
  #listeners = new Set();
  #now;

  /** @param {{ readonly now?: () => number }} [options] `now`: ms since 1970 */
  constructor({ now = Date.now } = {}) {
    this.#now = now;
    const admin = { loginName: "admin", fullName: "Event Store Administrator", groups: ["$admins"] };
    this.#write("$user-admin", [system("$UserCreated", Buffer.from(JSON.stringify(admin)))]);
  }

  /** Number of events, hidden ones included. */
  get length() {
    return this.#all.length;
  }

  /** @param {number} index in the order of the log */
  at(index) {
    return this.#all[index];
  }

  /** Index of the first event at or behind a position. @param {number} position */
  indexOf(position) {
    let low = 0;
    let high = this.#all.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (/** @type {Recorded} */ (this.#all[middle]).position < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Names of all streams that were ever written, in the order of their first events. */
  get streams() {
    return [...this.#streams].filter(([, { events }]) => events.length > 0).map(([name]) => name);
  }

  /** Called after every commit. Returns how to stop that. @param {() => void} listener */
  onCommit(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What the server keeps of ids in memory, for "any", is lost by a restart. */
  forgetIds() {
    this.#ids.clear();
  }

  /**
   * @param {string} stream
   * @param {Expected} expected
   * @param {readonly Proposed[]} events
   * @returns {Appended}
   */
  append(stream, expected, events) {
    const decision = this.#decide(
      stream,
      expected,
      events.map((event) => event.id),
    );
    const last = this.last(stream);
    switch (decision.kind) {
      case "deleted":
        return { kind: "deleted" };
      case "wrong-version":
        return { kind: "wrong-version", current: last };
      case "repeat":
        return {
          kind: "repeated",
          revision: decision.last,
          position: this.#shownPosition(stream, decision.last),
          bytes: 0,
        };
      case "write": {
        const before = this.#end;
        // Metadata written to a soft-deleted stream brings it back, too.
        const revived = decision.undelete ? stream : this.#softDeletedOriginal(stream);
        const from = revived === null ? 0 : this.last(revived) + 1;
        const position = this.#write(stream, events);
        if (revived !== null) this.#undelete(revived, from);
        this.#committed();
        return { kind: "written", revision: last + events.length, position, bytes: this.#end - before };
      }
    }
  }

  /**
   * Soft: hides all events that there are; the next append goes on counting.
   * @param {string} stream
   * @param {Expected} expected
   * @returns {Removed}
   */
  remove(stream, expected) {
    return this.#removing(stream, expected, () => this.#write(`$$${stream}`, [system("$metadata", SOFT_DELETED)]));
  }

  /**
   * For ever.
   * @param {string} stream
   * @param {Expected} expected
   * @returns {Removed}
   */
  tombstone(stream, expected) {
    return this.#removing(stream, expected, () => {
      const tombstone = { ...system("$streamDeleted", NOTHING), stream, revision: DELETED, created: this.#now() };
      this.#stream(stream).tombstoned = true;
      return this.#push(tombstone);
    });
  }

  /**
   * What is shown of a stream at this moment.
   * @param {string} stream
   * @param {StreamRange} range
   * @returns {StreamRead}
   */
  readStream(stream, { direction, from, max }) {
    if (this.isTombstoned(stream)) return { kind: "deleted" };
    const found = this.#streams.get(stream);
    const retention = found?.retention ?? {};
    if (found === undefined || found.events.length === 0 || retention.truncateBefore === DELETED) {
      return { kind: "not-found" };
    }
    const last = found.events.length - 1;
    const now = this.#now();
    const step = direction === "forwards" ? 1 : -1;
    const start = from === "start" ? 0 : from === "end" ? last + (step === 1 ? 1 : 0) : from;
    /** @type {Recorded[]} */
    const events = [];
    for (
      let at = step === 1 ? start : Math.min(start, last);
      at >= 0 && at <= last && events.length < max;
      at += step
    ) {
      const event = /** @type {Recorded} */ (found.events[at]);
      if (isShown(retention, event, last, now)) events.push(event);
      else if (step === -1) break;
    }
    return { kind: "events", events };
  }

  /** Revision of the last event of a stream, hidden or not; -1: none. @param {string} stream */
  last(stream) {
    return (this.#streams.get(stream)?.events.length ?? 0) - 1;
  }

  /** @param {string} stream */
  isTombstoned(stream) {
    const original = stream.startsWith("$$") ? stream.slice(2) : stream;
    return this.#streams.get(original)?.tombstoned === true || this.#streams.get(stream)?.tombstoned === true;
  }

  /**
   * @param {string} stream
   * @param {Expected} expected
   * @param {readonly string[]} ids
   * @returns {Decision}
   */
  #decide(stream, expected, ids) {
    const found = this.#streams.get(stream);
    return decide(
      {
        last: this.last(stream),
        tombstoned: this.isTombstoned(stream),
        softDeleted: found?.retention.truncateBefore === DELETED,
        hasMetadata: this.last(`$$${stream}`) >= 0,
        idAt: (revision) => found?.events[revision]?.id,
        revisionOf: (id) => {
          const place = this.#ids.get(id);
          return place?.stream === stream ? place.revision : undefined;
        },
      },
      expected,
      ids,
    );
  }

  /**
   * @param {string} stream
   * @param {Expected} expected
   * @param {() => number} write
   * @returns {Removed}
   */
  #removing(stream, expected, write) {
    const decision = this.#decide(stream, expected, [randomUUID()]);
    if (decision.kind === "deleted") return { kind: "deleted" };
    if (decision.kind !== "write") return { kind: "wrong-version", current: this.last(stream) };
    const position = write();
    this.#committed();
    return { kind: "removed", position };
  }

  /** The soft-deleted stream that this is the metadata of. @param {string} stream */
  #softDeletedOriginal(stream) {
    if (!stream.startsWith("$$")) return null;
    const original = stream.slice(2);
    return this.#streams.get(original)?.retention.truncateBefore === DELETED ? original : null;
  }

  /**
   * @param {string} stream
   * @param {number} from
   */
  #undelete(stream, from) {
    const metadata = this.#streams.get(`$$${stream}`)?.events.at(-1);
    this.#write(`$$${stream}`, [system("$metadata", truncatedAt(metadata, from))]);
  }

  /**
   * @param {string} stream
   * @param {readonly Proposed[]} proposals
   * @returns {number} position of the last one
   */
  #write(stream, proposals) {
    const { events } = this.#stream(stream);
    const created = this.#now();
    let position = this.#end;
    for (const proposal of proposals) {
      const recorded = { ...proposal, stream, revision: events.length, created };
      this.#ids.set(proposal.id, { stream, revision: events.length });
      position = this.#push(recorded, events);
    }
    if (stream.startsWith("$$")) {
      const original = stream.slice(2);
      this.#stream(original).retention = retentionOf(original, events.at(-1));
    }
    return position;
  }

  /**
   * @param {Omit<Recorded, "position">} record
   * @param {Recorded[]} [stream]
   */
  #push(record, stream) {
    const recorded = { ...record, position: this.#end };
    this.#all.push(recorded);
    stream?.push(recorded);
    const { data, metadata, type } = record;
    this.#end += RECORD_OVERHEAD + data.length + metadata.length + type.length + record.stream.length;
    return recorded.position;
  }

  /** @param {string} name */
  #stream(name) {
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = { events: [], tombstoned: false, retention: retentionOf(name, undefined) };
      this.#streams.set(name, stream);
    }
    return stream;
  }

  /**
   * @param {string} stream
   * @param {number} revision
   */
  #shownPosition(stream, revision) {
    const read = this.readStream(stream, { direction: "forwards", from: revision, max: 1 });
    const event = read.kind === "events" ? read.events[0] : undefined;
    return event?.revision === revision ? event.position : null;
  }

  #committed() {
    for (const listener of this.#listeners) listener();
  }
}

/**
 * @param {string} type
 * @param {Uint8Array} data
 * @returns {Proposed}
 */
function system(type, data) {
  return { id: randomUUID(), type, json: data.length > 0, data, metadata: NOTHING };
}
