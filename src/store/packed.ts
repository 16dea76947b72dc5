/** The events of one append as one text: one object to keep, where twelve events would be a hundred. */
import type { EventDraft, RecordedEvent, StreamName } from "./port.js";
import { seal } from "./seal.js";

export class PackedEvents {
  readonly firstRevision: number;
  readonly firstPosition: number;
  /** Chain after the last event. */
  readonly chain: string;
  readonly #stream: StreamName;
  readonly #text: Kept;
  /** Where the id, the data and the metadata of each event end in the text. */
  readonly #ends: readonly number[];
  readonly #types: readonly string[];

  /** Seals the drafts behind `previousChain`. */
  constructor(
    stream: StreamName,
    firstRevision: number,
    firstPosition: number,
    previousChain: string,
    drafts: readonly EventDraft[],
  ) {
    const ends: number[] = [];
    const types: string[] = [];
    let text = "";
    let chain = previousChain;
    for (const draft of drafts) {
      const sealed = seal(chain, firstRevision + types.length, draft);
      chain = sealed.chain;
      text += draft.id;
      ends.push(text.length);
      text += sealed.data;
      ends.push(text.length);
      text += sealed.metadata;
      ends.push(text.length);
      types.push(draft.type);
    }
    this.#stream = stream;
    this.firstRevision = firstRevision;
    this.firstPosition = firstPosition;
    this.chain = chain;
    this.#text = keep(text);
    this.#ends = ends;
    this.#types = types;
  }

  get count(): number {
    return this.#types.length;
  }

  /** Adds the events from place `from` on to `list`. */
  unpack(list: RecordedEvent[], from = 0): void {
    for (let place = from; place < this.#types.length; place++) list.push(this.#event(place));
  }

  #event(place: number): RecordedEvent {
    const [start, id, data, metadata] = [
      this.#end(3 * place - 1),
      this.#end(3 * place),
      this.#end(3 * place + 1),
      this.#end(3 * place + 2),
    ];
    return {
      position: this.firstPosition + place,
      stream: this.#stream,
      revision: this.firstRevision + place,
      id: this.#text.slice(start, id),
      type: this.#types[place] ?? "",
      data: this.#text.slice(id, data),
      metadata: this.#text.slice(data, metadata),
    };
  }

  #end(place: number): number {
    return this.#ends[place] ?? 0;
  }
}

/** bytes */
const CHUNK = 1024 * 1024;

/** A text that is kept: as characters of its own, or as bytes of a chunk that many share. */
type Kept = { slice(start: number, end: number): string };

let chunk = Buffer.allocUnsafeSlow(0);
let used = 0;

/**
 * Nearly all texts are ASCII: those are copied behind each other into chunks outside the heap, where they cost the garbage
 * collector nothing however long they are kept. A chunk goes with the last text in it.
 */
function keep(text: string): Kept {
  if (text.length * 3 > CHUNK) return text;
  if (used + text.length * 3 > chunk.byteLength) {
    chunk = Buffer.allocUnsafeSlow(CHUNK);
    used = 0;
  }
  const bytes = chunk.write(text, used);
  if (bytes !== text.length) return text;
  const kept = new Chunked(chunk, used);
  used += bytes;
  return kept;
}

class Chunked implements Kept {
  readonly #chunk: Buffer;
  readonly #start: number;

  constructor(chunk: Buffer, start: number) {
    this.#chunk = chunk;
    this.#start = start;
  }

  slice(start: number, end: number): string {
    return this.#chunk.toString("latin1", this.#start + start, this.#start + end);
  }
}
