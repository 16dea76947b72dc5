/** Copies dispatches from one ledger, such as a bundle, into another, each after a check. */
import { HookledgerError } from "../errors.js";
import { eventBytes, MAX_APPEND_BYTES, mostBytes } from "../store/append.js";
import type { AppendRequest, Blob, EventDraft, EventStore, RecordedEvent, StreamEvents } from "../store/port.js";
import { type BlobReference, blobReferences } from "../store/record/blob-references.js";
import { InFlight } from "./in-flight.js";
import { type Lacking, wholeBlob } from "./payloads.js";
import { type Refusal, refusal } from "./refusal.js";
import { unseal } from "./sealed.js";
import { streamsThere } from "./streams-there.js";

export type Imported = {
  /** Dispatches that are new to the ledger. */
  readonly added: number;
  /** The ledger had their beginning. */
  readonly grown: number;
  /** The ledger has all that there is of them, or more. */
  readonly kept: number;
  readonly refused: readonly Refusal[];
  /** Payloads that copied events name and the source does not have, or not as their digest says. */
  readonly missing: number;
  readonly damaged: number;
};

/**
 * Appends to `target` what it does not have of each dispatch of `source`. One whose seals do not hold is refused (HL_BUNDLE), and
 * one that is there with other content (HL_IMPORT_CONFLICT); nothing of it is changed, and the others are copied all the same.
 * Doing it again, after whatever end, copies what is left. Throws what the stores throw. `onProgress` is told after each page.
 */
export async function importLedger(
  source: EventStore,
  target: EventStore,
  onProgress: (imported: Imported) => void = () => {},
): Promise<Imported> {
  const importer = new Importer(source, target);
  for (const streams of [source.readStreams({ order: "oldest" }), source.readUnlisted()]) {
    for await (const page of streams) {
      await importer.page(page);
      onProgress(importer.counts);
    }
  }
  return importer.finish();
}

/** Digests that are remembered, so that what many dispatches share is read once. */
const MAX_REMEMBERED = 16_384;
/** Bytes of payloads from which on the events that follow go into an append of their own. */
const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024;

/** A stream of which something is to be appended, from revision `from` on. */
type Due = {
  readonly stream: StreamEvents;
  readonly drafts: readonly EventDraft[];
  readonly from: number;
  /** What its appends carry. */
  readonly digests: string[];
  /** Appends without an answer, and one more until all are under way. */
  open: number;
  /** Somebody else appended to it meanwhile. */
  overtaken: boolean;
};

class Importer {
  readonly #source: EventStore;
  readonly #target: EventStore;
  /** Digests of what the target has, and of what the source lacks. */
  readonly #settled = new Set<string>();
  readonly #inFlight = new InFlight();
  readonly #counts = { added: 0, grown: 0, kept: 0 };
  readonly #refused: Refusal[] = [];
  readonly #lacking: Lacking = { missing: 0, damaged: 0 };

  constructor(source: EventStore, target: EventStore) {
    this.#source = source;
    this.#target = target;
  }

  get counts(): Imported {
    return { ...this.#counts, refused: this.#refused, ...this.#lacking };
  }

  /** Resolves once all is under way: what this page waits for, the next one need not. */
  async page(page: readonly StreamEvents[]): Promise<void> {
    const names = await streamsThere(this.#target, page);
    const read = async ({ stream }: StreamEvents) => (names.has(stream) ? this.#target.readStream(stream) : null);
    const existing = await Promise.all(page.map(read));
    const all = page.flatMap((stream, place) => this.#due(stream, existing[place] ?? null) ?? []);
    const last = all.at(-1);
    for (const due of all) {
      await this.#copy(due, due === last);
      this.#answered(due);
    }
  }

  async finish(): Promise<Imported> {
    await this.#inFlight.drained();
    return this.counts;
  }

  /** null: there is nothing to append, or nothing is to be. */
  #due(stream: StreamEvents, existing: StreamEvents | null): Due | null {
    const unsealed = unseal(stream);
    if (unsealed.kind === "unsound") {
      const { revision, detail } = unsealed;
      this.#refused.push(refusal(stream.stream, "HL_BUNDLE", `revision ${revision}: ${detail}`));
      return null;
    }
    const { drafts } = unsealed;
    const from = existing?.events.length ?? 0;
    const other = existing === null ? -1 : firstOther(existing.events, stream.events);
    if (other >= 0) {
      const message = `the ledger has it with another event at revision ${other}`;
      this.#refused.push(refusal(stream.stream, "HL_IMPORT_CONFLICT", message));
      return null;
    }
    if (from < drafts.length) return { stream, drafts, from, digests: [], open: 1, overtaken: false };
    this.#counts.kept++;
    return null;
  }

  /** One append after the other, the first with the session; `barrier`: all are durable once they are acknowledged. */
  async #copy(due: Due, barrier: boolean): Promise<void> {
    const { drafts, from } = due;
    const wanted = this.#wanted(due);
    if (wanted.length === 0 && drafts.reduce((sum, draft) => sum + mostBytes(draft), 0) <= MAX_APPEND_BYTES) {
      await this.#send(due, from, drafts.length, [], barrier);
      return;
    }
    let first = from;
    let bytes = 0;
    let blobs: Blob[] = [];
    for (let end = from; end < drafts.length; end++) {
      const draft = drafts[end];
      if (draft === undefined) break;
      const size = eventBytes(draft);
      if (end > first && (bytes + size > MAX_APPEND_BYTES || bytesOf(blobs) > MAX_PAYLOAD_BYTES)) {
        await this.#send(due, first, end, blobs, barrier);
        [first, bytes, blobs] = [end, 0, []];
      }
      bytes += size;
      blobs.push(...(await this.#blobs(wanted, draft, due)));
    }
    await this.#send(due, first, drafts.length, blobs, barrier);
  }

  #send(due: Due, first: number, end: number, blobs: readonly Blob[], barrier: boolean): Promise<void> {
    const { stream, head } = due.stream;
    const events = first === 0 && end === due.drafts.length ? due.drafts : due.drafts.slice(first, end);
    const session = head?.session ?? undefined;
    const request: AppendRequest = {
      stream,
      expected: first === 0 ? "none" : first - 1,
      events,
      barrier,
      ...(blobs.length === 0 ? {} : { blobs }),
      ...(first === 0 && session !== undefined ? { session } : {}),
    };
    let size = bytesOf(blobs);
    for (const { data, metadata, payloads = "" } of events) size += data.length + metadata.length + payloads.length;
    due.open++;
    return this.#inFlight.add(size, () => this.#append(request, due));
  }

  /** What the events to be appended refer to, and the target may not have. */
  #wanted({ stream, from }: Due): readonly BlobReference[] {
    const events = from === 0 ? stream.events : stream.events.slice(from);
    return blobReferences(events, stream.events).filter(({ digest }) => !this.#settled.has(digest));
  }

  /** Those that go with this event; none of them goes again with a later one. */
  async #blobs(wanted: readonly BlobReference[], { data }: EventDraft, { digests }: Due): Promise<readonly Blob[]> {
    const blobs: Blob[] = [];
    for (const reference of wanted) {
      const { digest } = reference;
      if (digests.includes(digest) || this.#settled.has(digest) || !data.includes(digest)) continue;
      const blob = await wholeBlob(this.#source, reference, this.#lacking);
      if (blob === null) {
        this.#settled.add(digest);
        continue;
      }
      digests.push(digest);
      blobs.push(blob);
    }
    return blobs;
  }

  async #append(request: AppendRequest, due: Due): Promise<void> {
    try {
      await this.#target.append(request);
    } catch (error) {
      if (!(error instanceof HookledgerError) || error.code !== "HL_STORE_CONFLICT") throw error;
      due.overtaken = true;
    }
    this.#answered(due);
  }

  #answered(due: Due): void {
    due.open--;
    if (due.open > 0) return;
    const { stream, from, digests, overtaken } = due;
    if (overtaken) {
      this.#refused.push(refusal(stream.stream, "HL_IMPORT_CONFLICT", "somebody else appended to it meanwhile"));
      return;
    }
    this.#counts[from === 0 ? "added" : "grown"]++;
    if (this.#settled.size > MAX_REMEMBERED) this.#settled.clear();
    for (const digest of digests) this.#settled.add(digest);
  }
}

function bytesOf(blobs: readonly Blob[]): number {
  return blobs.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
}

/** Revision at which the two part, or -1 where one is the beginning of the other. */
function firstOther(some: readonly RecordedEvent[], others: readonly RecordedEvent[]): number {
  return some.findIndex((event, revision) => {
    const other = others[revision];
    return other !== undefined && !isSame(event, other);
  });
}

/** Payload bytes that were erased on one side do not make two events of one. */
function isSame(one: RecordedEvent, other: RecordedEvent): boolean {
  if (one.id !== other.id || one.type !== other.type || one.data !== other.data) return false;
  return one.metadata === other.metadata || chained(one.metadata) === chained(other.metadata);
}

/** The part that the chain covers, and the chain. */
function chained(metadata: string): string {
  const payloads = metadata.indexOf('","payloads":');
  return payloads < 0 ? metadata : `${metadata.slice(0, payloads)}"}`;
}
