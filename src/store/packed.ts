/** The events of one append in one piece of text: one object to keep, where twelve events would be a hundred. */
import type { EventDraft, RecordedEvent, StreamName } from "./port.js";
import { seal } from "./seal.js";

export class PackedEvents {
  readonly firstRevision: number;
  readonly firstPosition: number;
  /** Chain after the last event. */
  readonly chain: string;
  readonly #stream: StreamName;
  readonly #text: string;
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
    this.#text = flat(text);
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

const scratch = Buffer.allocUnsafe(64 * 1024);

/** The same text, copied into one piece: what is put together from parts otherwise keeps every part alive until it is read. */
function flat(text: string): string {
  if (text.length * 3 > scratch.byteLength) return Buffer.from(text).toString();
  const bytes = scratch.write(text);
  return scratch.toString(bytes === text.length ? "latin1" : "utf8", 0, bytes);
}
