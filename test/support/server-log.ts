/** A server's log in memory, with the server's rules for expected revisions, idempotency and deletion; a stand-in for unit tests. */
import { HookledgerError } from "#src/errors.js";
import type { Expected, ServerDraft, ServerEvent, ServerLog, Written } from "#src/store/eventstoredb/server-log.js";

type Stream = { readonly events: ServerEvent[]; visibleFrom: number; tombstoned: boolean };

export type ServerCall = {
  readonly kind: "append" | "delete" | "readStream" | "readAll";
  readonly stream: string;
  readonly type?: string;
};

/** What becomes of a call: refused, carried out but not answered, or neither. */
export type Fault = "unavailable" | "lost-answer" | "lost-call";

export class MemoryServerLog implements ServerLog {
  /** Made before the call takes effect, and before it is answered: where a test holds it up. */
  gate: (call: ServerCall, when: "before" | "after") => Promise<void> | undefined = () => undefined;
  fault: (call: ServerCall) => Fault | undefined = () => undefined;
  readonly calls: ServerCall[] = [];
  #log: ServerEvent[] = [];
  readonly #streams = new Map<string, Stream>();
  readonly #ids = new Map<string, { readonly stream: string; readonly revision: number }>();
  #position = 0;

  append(stream: string, expected: Expected, drafts: readonly ServerDraft[]): Promise<Written> {
    const call: ServerCall = { kind: "append", stream, type: drafts[0]?.type ?? "" };
    return this.#carryOut(call, () => this.#append(stream, expected, drafts));
  }

  deleteStream(stream: string, expected: number): Promise<void> {
    return this.#carryOut({ kind: "delete", stream }, () => {
      const found = this.#streams.get(stream);
      if (found === undefined || found.tombstoned || lastOf(found) !== expected) throw conflict(stream);
      found.visibleFrom = Number.POSITIVE_INFINITY;
    });
  }

  readStream(
    stream: string,
    options:
      | { readonly direction: "forward"; readonly from: number; readonly max: number }
      | { readonly direction: "backward"; readonly max: number },
  ): Promise<readonly ServerEvent[] | null> {
    return this.#carryOut({ kind: "readStream", stream }, () => {
      const found = this.#streams.get(stream);
      if (found === undefined || found.tombstoned || found.visibleFrom === Number.POSITIVE_INFINITY) return null;
      const visible = found.events.slice(found.visibleFrom);
      if (options.direction === "backward") return visible.reverse().slice(0, options.max);
      return visible.filter(({ revision }) => revision >= options.from).slice(0, options.max);
    });
  }

  readAll(options: {
    readonly after: number;
    readonly prefixes: readonly string[];
    readonly max: number;
  }): Promise<readonly ServerEvent[]> {
    return this.#carryOut({ kind: "readAll", stream: "$all" }, () => {
      const { after, prefixes, max } = options;
      const matches = ({ stream }: ServerEvent) => prefixes.some((prefix) => stream.startsWith(prefix));
      return this.#log.filter((event) => event.position > after && matches(event)).slice(0, max);
    });
  }

  /** Deletes whatever its revision. */
  remove(stream: string): void {
    const found = this.#streams.get(stream);
    if (found !== undefined) found.visibleFrom = Number.POSITIVE_INFINITY;
  }

  /** Deletes for good. */
  tombstone(stream: string): void {
    const found = this.#streams.get(stream) ?? { events: [], visibleFrom: 0, tombstoned: true };
    found.tombstoned = true;
    this.#streams.set(stream, found);
  }

  /** As `$tb` does. */
  truncateBefore(stream: string, revision: number): void {
    const found = this.#streams.get(stream);
    if (found !== undefined) found.visibleFrom = revision;
  }

  /** Takes out of the whole log what can no longer be read from its stream. */
  scavenge(): void {
    this.#log = this.#log.filter(({ stream, revision }) => {
      const found = this.#streams.get(stream);
      return found !== undefined && !found.tombstoned && revision >= found.visibleFrom;
    });
  }

  /** Visible events, without a call. */
  peek(stream: string): readonly ServerEvent[] {
    const found = this.#streams.get(stream);
    return found === undefined || found.tombstoned ? [] : found.events.slice(found.visibleFrom);
  }

  get streams(): readonly string[] {
    return [...this.#streams.keys()].filter((stream) => this.peek(stream).length > 0);
  }

  countOf(kind: ServerCall["kind"], stream = ""): number {
    return this.calls.filter((call) => call.kind === kind && call.stream.startsWith(stream)).length;
  }

  #carryOut<T>(call: ServerCall, effect: () => T): Promise<T> {
    this.calls.push(call);
    const fault = this.fault(call);
    const before = this.gate(call, "before");
    const outcome = before === undefined ? attempt(fault, effect) : before.then(() => attempt(fault, effect));
    return Promise.resolve(outcome).then(async (settled) => {
      await this.gate(call, "after");
      if (settled.failed) throw settled.error;
      return settled.value;
    });
  }

  #append(stream: string, expected: Expected, drafts: readonly ServerDraft[]): Written {
    const found = this.#streams.get(stream) ?? { events: [], visibleFrom: 0, tombstoned: false };
    if (found.tombstoned) throw conflict(stream);
    const last = lastOf(found);
    const softDeleted = found.visibleFrom === Number.POSITIVE_INFINITY;
    if (expected === "any") {
      const again = drafts.map(({ id }) => this.#ids.get(id));
      if (again.every((seen) => seen?.stream === stream)) return this.#writtenAt(found, again.at(-1)?.revision ?? last);
    } else {
      const wanted = expected === "none" ? -1 : expected;
      if (wanted > last) throw conflict(stream);
      if (wanted < last) {
        const same = drafts.every(({ id }, i) => found.events[wanted + 1 + i]?.id === id);
        if (same) return this.#writtenAt(found, wanted + drafts.length);
        const fresh = drafts[0] !== undefined && found.events[wanted + 1]?.id !== drafts[0].id;
        if (!(fresh && expected === "none" && softDeleted)) throw conflict(stream);
      }
    }
    if (softDeleted) found.visibleFrom = last + 1;
    this.#streams.set(stream, found);
    for (const draft of drafts) {
      const revision = found.events.length;
      const event: ServerEvent = {
        ...draft,
        stream,
        revision,
        position: ++this.#position,
        content: copy(draft.content),
      };
      found.events.push(event);
      this.#log.push(event);
      this.#ids.set(draft.id, { stream, revision });
    }
    return this.#writtenAt(found, lastOf(found));
  }

  #writtenAt({ events }: Stream, revision: number): Written {
    return { revision, position: events[revision]?.position ?? 0 };
  }
}

type Settled<T> = { readonly failed: false; readonly value: T } | { readonly failed: true; readonly error: unknown };

function attempt<T>(fault: Fault | undefined, effect: () => T): Settled<T> {
  if (fault === "unavailable") return { failed: true, error: new HookledgerError("HL_STORE_UNAVAILABLE", "refused") };
  if (fault === "lost-call") return { failed: true, error: new HookledgerError("HL_STORE_AMBIGUOUS", "no answer") };
  try {
    const value = effect();
    if (fault === undefined) return { failed: false, value };
  } catch (error) {
    if (fault === undefined) return { failed: true, error };
  }
  return { failed: true, error: new HookledgerError("HL_STORE_AMBIGUOUS", "no answer") };
}

function lastOf({ events }: Stream): number {
  return events.length - 1;
}

function conflict(stream: string): HookledgerError {
  return new HookledgerError("HL_STORE_CONFLICT", `${stream} is not at the expected revision`);
}

/** As the wire would. */
function copy(content: ServerDraft["content"]): ServerEvent["content"] {
  if (content.kind === "bytes") return { kind: "bytes", data: new Uint8Array(content.data) };
  return {
    kind: "json",
    data: JSON.parse(JSON.stringify(content.data)),
    metadata: JSON.parse(JSON.stringify(content.metadata)),
  };
}
