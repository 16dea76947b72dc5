/** Records one dispatch: feeds the machine, and appends what it took, in order, with one durability barrier. */
import type { Digest, DispatchEvent } from "../core/events.js";
import { evolve } from "../core/machine.js";
import { NEW, type State } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import type { AppendRequest, AppendResult, Blob, EventDraft, EventStore, StreamName } from "../store/port.js";
import { encodeData } from "../store/record/encode.js";
import { eventIds } from "../store/record/event-id.js";
import { type DispatchMetadata, type EventMoment, encodePayloads, metadataWriter } from "../store/record/metadata.js";
import { thrownText } from "../subscribers/fault.js";
import type { Clock } from "./clock.js";

/** bytes; what is larger is written beside the events, by digest. */
export const INLINE_PAYLOAD_BYTES = 4096;

/** Bytes that an event refers to. */
type Attachment = { readonly digest: Digest; readonly bytes: Uint8Array };

const NONE: readonly Attachment[] = [];

/** An event that the machine has taken and the store has not been given yet. */
type Recorded = {
  readonly event: DispatchEvent;
  readonly moment: EventMoment;
  readonly attachments: readonly Attachment[];
};

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
  #blobs: Blob[] = [];
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
    this.#blobs.push(blob);
  }

  /** Resolves once all that was recorded is durable; rejects with what the store said first. */
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
  #draft({ event, moment, attachments }: Recorded, revision: number): EventDraft {
    const draft = {
      id: this.#idOf(revision),
      type: event.type,
      data: encodeData(event),
      metadata: this.#metadataOf(moment),
    };
    if (attachments.length === 0) return draft;
    const payloads = this.#inline(attachments);
    return payloads.size === 0 ? draft : { ...draft, payloads: encodePayloads(payloads) };
  }

  #inline(attachments: readonly Attachment[]): Map<Digest, Uint8Array> {
    const inline = new Map<Digest, Uint8Array>();
    for (const { digest, bytes } of attachments) {
      if (this.#attached.has(digest)) continue;
      this.#attached.add(digest);
      if (bytes.byteLength <= INLINE_PAYLOAD_BYTES) inline.set(digest, bytes);
      else this.#blobs.push({ digest, bytes });
    }
    return inline;
  }

  #defer(): void {
    this.#undefer ??= this.#clock.defer(() => this.#flush(false));
  }

  #flush(barrier: boolean): void {
    this.#undefer?.();
    this.#undefer = null;
    if (this.#recorded.length === 0 || this.#failure !== null) return;
    const events = this.#recorded.map((recorded, place) => this.#draft(recorded, this.#appended + place));
    const request: AppendRequest = {
      stream: this.stream,
      expected: this.#appended === 0 ? "none" : this.#appended - 1,
      events,
      barrier,
      ...(this.#blobs.length === 0 ? {} : { blobs: this.#blobs }),
      ...(this.#appended === 0 && this.#session !== undefined ? { session: this.#session } : {}),
    };
    this.#appended += events.length;
    this.#recorded = [];
    this.#blobs = [];
    this.#last = this.#append(request).catch((error: unknown) => {
      this.#failure ??= asStoreError(error);
      return null;
    });
  }

  /** What a store throws outside its promise is a failure like any other. */
  async #append(request: AppendRequest): Promise<AppendResult> {
    return this.#store.append(request);
  }
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
