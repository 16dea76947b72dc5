/** Records one dispatch: feeds the machine, and appends what it took, in order, with one durability barrier. */
import type { Digest, DispatchEvent } from "../core/events.js";
import { evolve } from "../core/machine.js";
import { NEW, type State } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import { eventBytes, MAX_APPEND_BYTES, mostBytes } from "../store/append.js";
import type { AppendRequest, AppendResult, Blob, EventDraft, EventStore, StreamName } from "../store/port.js";
import { encodeData } from "../store/record/encode.js";
import { eventIds } from "../store/record/event-id.js";
import { type DispatchMetadata, type EventMoment, encodePayloads, metadataWriter } from "../store/record/metadata.js";
import { thrownText } from "../subscribers/fault.js";
import type { Clock } from "./clock.js";

/** bytes; what is larger is written beside the events, by digest. */
export const INLINE_PAYLOAD_BYTES = 4096;

/** Bytes that an event refers to. */
export type Attachment = { readonly digest: Digest; readonly bytes: Uint8Array };

const NONE: readonly Attachment[] = [];

/** An event that the machine has taken and the store has not been given yet. */
type Recorded = {
  readonly event: DispatchEvent;
  readonly moment: EventMoment;
  readonly attachments: readonly Attachment[];
};

/** An event as it is appended, with the blobs that go with it. */
type Drafted = { readonly draft: EventDraft; readonly blobs: readonly Blob[] };

const NO_BLOBS: readonly Blob[] = [];

export class Recorder {
  readonly stream: StreamName;
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #session: string | undefined;
  readonly #idOf: (revision: number) => string;
  readonly #metadataOf: (moment: EventMoment) => string;
  readonly #attached = new Set<Digest>();
  #state: State = NEW;
  #recorded: Recorded[] = [];
  #beside: readonly Blob[] = NO_BLOBS;
  #appended = 0;
  #undefer: (() => void) | null = null;
  #last: Promise<AppendResult | null> = Promise.resolve(null);
  #failure: HookledgerError | null = null;

  constructor(store: EventStore, dispatchId: string, metadata: DispatchMetadata, clock: Clock) {
    this.stream = `hookdispatch-${dispatchId}`;
    this.#store = store;
    this.#clock = clock;
    this.#session = metadata.session;
    this.#idOf = eventIds(dispatchId);
    this.#metadataOf = metadataWriter(metadata);
  }

  get state(): State {
    return this.#state;
  }

  /** Why nothing more is written, or null. */
  get failure(): HookledgerError | null {
    return this.#failure;
  }

  /** Takes an event that the machine asked for. Appended at the latest at the end of this macrotask. */
  record(event: DispatchEvent, moment: EventMoment, attachments: readonly Attachment[] = NONE): void {
    const state = evolve(this.#state, event);
    if (state.kind === "violation") {
      throw new HookledgerError(
        "HL_INTERNAL",
        `the dispatcher recorded ${state.found} where ${state.expected} was due`,
      );
    }
    this.#state = state;
    if (this.#failure !== null) return;
    this.#recorded.push({ event, moment, attachments });
    this.#defer();
  }

  /** Writes beside the next append what no event refers to by a payload (the configuration). */
  attach(blob: Blob): void {
    this.#beside = [...this.#beside, blob];
  }

  /** Resolves once all that was recorded is durable; rejects with what became of the first append that failed. */
  async durable(): Promise<void> {
    this.#flush(true);
    await this.#acknowledged();
  }

  /** The same, but what is new is durable at the latest with the store's next barrier, or when it is closed. */
  async written(): Promise<void> {
    this.#flush(false);
    await this.#acknowledged();
  }

  async #acknowledged(): Promise<void> {
    await this.#last;
    if (this.#failure !== null) throw this.#failure;
  }

  /** Printed when it is appended and not when it is recorded: the next subscriber is called in between. */
  #draft({ event, moment, attachments }: Recorded, revision: number): Drafted {
    const draft = {
      id: this.#idOf(revision),
      type: event.type,
      data: encodeData(event),
      metadata: this.#metadataOf(moment),
    };
    if (attachments.length === 0) return { draft, blobs: NO_BLOBS };
    const inline = new Map<Digest, Uint8Array>();
    const blobs: Blob[] = [];
    for (const { digest, bytes } of attachments) {
      if (this.#attached.has(digest)) continue;
      this.#attached.add(digest);
      if (bytes.byteLength <= INLINE_PAYLOAD_BYTES) inline.set(digest, bytes);
      else blobs.push({ digest, bytes });
    }
    return { draft: inline.size === 0 ? draft : { ...draft, payloads: encodePayloads(inline) }, blobs };
  }

  #defer(): void {
    this.#undefer ??= this.#clock.defer(() => this.#flush(false));
  }

  #flush(barrier: boolean): void {
    this.#undefer?.();
    this.#undefer = null;
    if (this.#recorded.length === 0 || this.#failure !== null) return;
    const drafted = this.#recorded.map((recorded, place) => this.#draft(recorded, this.#appended + place));
    this.#recorded = [];
    const parts = cut(drafted);
    for (const part of parts) this.#send(part, barrier && part === parts.at(-1));
  }

  #send(part: readonly Drafted[], barrier: boolean): void {
    const blobs = [...this.#beside, ...part.flatMap((drafted) => drafted.blobs)];
    const request: AppendRequest = {
      stream: this.stream,
      expected: this.#appended === 0 ? "none" : this.#appended - 1,
      events: part.map(({ draft }) => draft),
      barrier,
      ...(blobs.length === 0 ? {} : { blobs }),
      ...(this.#appended === 0 && this.#session !== undefined ? { session: this.#session } : {}),
    };
    this.#appended += part.length;
    this.#beside = NO_BLOBS;
    const before = this.#last;
    this.#last = this.#append(request).catch(async (error: unknown) => {
      // A later append fails because an earlier one did, and may hear of it first.
      await before;
      this.#failure ??= asStoreError(error);
      return null;
    });
  }

  /** What a store throws outside its promise is a failure like any other. */
  async #append(request: AppendRequest): Promise<AppendResult> {
    return this.#store.append(request);
  }
}

/** As few appends as a store's bound allows. Nearly always it is one, and then nothing is measured. */
function cut(drafted: readonly Drafted[]): readonly (readonly Drafted[])[] {
  if (drafted.reduce((sum, { draft }) => sum + mostBytes(draft), 0) <= MAX_APPEND_BYTES) return [drafted];
  const parts: Drafted[][] = [];
  let part: Drafted[] = [];
  let bytes = 0;
  for (const next of drafted) {
    const size = eventBytes(next.draft);
    if (part.length > 0 && bytes + size > MAX_APPEND_BYTES) {
      parts.push(part);
      part = [];
      bytes = 0;
    }
    part.push(next);
    bytes += size;
  }
  return [...parts, part];
}

/** bytes of an event's data: room is left for metadata and a small payload within what a store takes as one event. */
export const MAX_DATA_BYTES = 192 * 1024;

export function isRecordable(event: DispatchEvent): boolean {
  return Buffer.byteLength(encodeData(event)) <= MAX_DATA_BYTES;
}

function asStoreError(error: unknown): HookledgerError {
  if (error instanceof HookledgerError) return error;
  return new HookledgerError("HL_STORE_AMBIGUOUS", `the store failed: ${thrownText(error)}`, { cause: error });
}
