/** Audit records in ledger order, out of a store, in flat memory. */
import type { DispatchEvent } from "../core/events.js";
import type { EventStore, RecordedEvent, StreamName } from "../store/port.js";
import { decodeEvent } from "../store/record/decode.js";
import { metadataOf } from "../store/record/metadata.js";
import { cursorOf, type ExportPlace } from "./cursor.js";
import { DispatchContext } from "./dispatch-context.js";
import { factsOf, undecodableFact } from "./facts.js";
import { type AuditRecord, auditRecord } from "./record.js";
import { type AuditSelection, type AuditSpan, selects } from "./selection.js";

export type AuditQuery = AuditSpan & {
  readonly selection: AuditSelection;
  /** Go on right behind this record. */
  readonly after?: ExportPlace;
};

/** Dispatches whose chains are remembered; one that is met again later is read again. */
const MAX_CONTEXTS = 256;

/**
 * A page for every page of the store, empty where nothing was asked for. An event that does not decode is a record like any
 * other. Throws what reading the store throws.
 */
export async function* auditRecords(store: EventStore, query: AuditQuery): AsyncGenerator<readonly AuditRecord[]> {
  const { after, selection } = query;
  const contexts = new Contexts(store);
  // The event of the cursor is read once more: it may have records behind the one that was taken.
  const start = after === undefined ? 0 : Math.max(0, after.position - 1);
  for await (const page of store.readAll({ after: start })) {
    const records: AuditRecord[] = [];
    for (const recorded of page) {
      const facts = await contexts.facts(recorded);
      facts.forEach((fact, part) => {
        const place = { position: recorded.position, part };
        if (isBehind(place, after) && selects(selection, query, fact)) records.push(auditRecord(cursorOf(place), fact));
      });
    }
    yield records;
  }
}

function isBehind({ position, part }: ExportPlace, after: ExportPlace | undefined): boolean {
  if (after === undefined || position > after.position) return true;
  return position === after.position && part > after.part;
}

const NO_PAYLOADS: ReadonlyMap<string, string> = new Map();
const NO_METADATA = "undecodable: metadata of no version that is known";

/** The contexts of the dispatches met last. */
class Contexts {
  readonly #store: EventStore;
  readonly #known = new Map<StreamName, DispatchContext>();

  constructor(store: EventStore) {
    this.#store = store;
  }

  async facts(recorded: RecordedEvent) {
    const metadata = metadataOf(recorded);
    const moment = { at: metadata?.at ?? null, session: metadata?.session ?? null };
    const decoded = decodeEvent(recorded.type, recorded.data);
    if (!("event" in decoded)) return [undecodableFact(recorded, `${decoded.kind}: ${decoded.found}`, moment)];
    const context = await this.#contextOf(recorded, decoded.event);
    context.take(decoded.event, metadata?.payloads ?? NO_PAYLOADS);
    if (metadata === null) return [undecodableFact(recorded, NO_METADATA, moment)];
    return factsOf(recorded, decoded.event, moment, context);
  }

  async #contextOf({ stream, revision }: RecordedEvent, event: DispatchEvent): Promise<DispatchContext> {
    const known = this.#known.get(stream);
    this.#known.delete(stream);
    const context = known ?? (event.type === "started" ? new DispatchContext() : await this.#reread(stream, revision));
    this.#known.set(stream, context);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_CONTEXTS && oldest !== undefined) this.#known.delete(oldest);
    return context;
  }

  async #reread(stream: StreamName, until: number): Promise<DispatchContext> {
    const context = new DispatchContext();
    const read = await this.#store.readStream(stream);
    for (const recorded of read?.events ?? []) {
      if (recorded.revision >= until) break;
      const decoded = decodeEvent(recorded.type, recorded.data);
      if ("event" in decoded) context.take(decoded.event, metadataOf(recorded)?.payloads ?? NO_PAYLOADS);
    }
    return context;
  }
}
