/** Proves that a recorded dispatch is what its own events come to, and that nobody touched them since. */
import type { Digest, DispatchEvent, Ref } from "../core/events.js";
import { evolve } from "../core/machine.js";
import { NEW, type State } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import { type DigestDomain, digest as digestOf } from "../payload/digest.js";
import { payloadFromBytes } from "../payload/payload.js";
import { readPlan } from "../payload/plan.js";
import type { EventStore, RecordedEvent, StreamEvents } from "../store/port.js";
import { decodeEvent } from "../store/record/decode.js";
import { eventIds } from "../store/record/event-id.js";
import { Undecodable } from "../store/record/fields.js";
import { metadataReprinter, type ReadMetadata, readMetadata } from "../store/record/metadata.js";
import { isUlid } from "../store/ulid.js";
import { sealsTo } from "./chain-check.js";
import { headFinding } from "./head-check.js";

export type DivergenceKind =
  | "illegal_event"
  | "decision"
  | "payload"
  | "chain"
  | "truncated"
  | "undecodable"
  | "unknown_type"
  | "unknown_version";

export type Divergence = {
  readonly dispatchId: string;
  readonly revision: number;
  readonly kind: DivergenceKind;
  readonly expected: string;
  readonly found: string;
};

/** `open`: it verifies as far as it goes, and is not concluded. */
export type Verification = { readonly open: boolean; readonly diverged: Divergence | null };

type Finding = Omit<Divergence, "dispatchId">;
/** Payloads of one stream that are proven, with the base64 text of those that its events carry. */
type KnownPayloads = Map<Digest, string | undefined>;
type Read = { readonly event: DispatchEvent; readonly metadata: ReadMetadata };

/** Verifies streams of one store. Keeps nothing but the digests of configurations that it has seen. */
export class Verifier {
  readonly #store: EventStore;
  readonly #configs = new Set<Digest>();
  readonly #printMetadata = metadataReprinter();

  constructor(store: EventStore) {
    this.#store = store;
  }

  /** The first divergence of a stream in ledger order, if there is any. Calls no subscriber. */
  async verify(stream: StreamEvents): Promise<Verification> {
    const dispatchId = stream.stream.slice("hookdispatch-".length);
    const { state, finding } = await this.#walk(stream, dispatchId);
    if (finding !== null) return { open: false, diverged: { dispatchId, ...finding } };
    return { open: state.kind === "open", diverged: null };
  }

  async #walk(stream: StreamEvents, dispatchId: string): Promise<{ state: State; finding: Finding | null }> {
    const idOf = eventIds(dispatchId);
    const known: KnownPayloads = new Map();
    let state: State = NEW;
    let chain = "";
    let position = 0;
    if (!isUlid(dispatchId)) {
      const expected = "a stream that is named by a ULID";
      return { state, finding: { revision: 0, kind: "illegal_event", expected, found: dispatchId.slice(0, 80) } };
    }
    for (const recorded of stream.events) {
      const revision = state.revision;
      const found = (finding: Omit<Finding, "revision">) => ({ state, finding: { revision, ...finding } });
      if (recorded.revision !== revision) {
        return found({
          kind: "illegal_event",
          expected: `revision ${revision}`,
          found: `revision ${recorded.revision}`,
        });
      }
      if (recorded.position <= position) {
        return found({
          kind: "illegal_event",
          expected: `a position behind ${position}`,
          found: `position ${recorded.position}`,
        });
      }
      const read = readRecorded(recorded);
      if ("kind" in read) return found(read);
      const evolved = evolve(state, read.event);
      if (evolved.kind === "violation") {
        const { expected } = evolved;
        return found({ kind: isConclusion(read.event) ? "decision" : "illegal_event", expected, found: evolved.found });
      }
      if (revision === 0 && evolved.started.dispatchId !== dispatchId) {
        return found({
          kind: "illegal_event",
          expected: `dispatch ${dispatchId}`,
          found: `dispatch ${evolved.started.dispatchId}`,
        });
      }
      if (recorded.id !== idOf(revision))
        return found({ kind: "illegal_event", expected: `event id ${idOf(revision)}`, found: recorded.id });
      if (!sealsTo(recorded, read.event, read.metadata, chain, this.#printMetadata)) {
        return found({ kind: "chain", expected: "the event as it was sealed", found: "another text or another chain" });
      }
      const bytes = hasBytes(read) ? await this.#bytesAmiss(read, evolved.started.flags, known) : null;
      if (bytes !== null) return found(bytes);
      chain = read.metadata.chain;
      position = recorded.position;
      state = evolved;
    }
    const finding = headFinding(stream, chain);
    return { state, finding: finding === null ? null : { revision: state.revision, ...finding } };
  }

  async #bytesAmiss(
    read: Read,
    flags: readonly string[],
    known: KnownPayloads,
  ): Promise<Omit<Finding, "revision"> | null> {
    return (await this.#payloadFinding(read, known)) ?? (await this.#planFinding(read.event, flags, known));
  }

  /** Everything that the event refers to is there and is what its digest says; everything it carries is referred to. */
  async #payloadFinding({ event, metadata }: Read, known: KnownPayloads): Promise<Omit<Finding, "revision"> | null> {
    const refs = refsOf(event);
    for (const digest of metadata.payloads.keys()) {
      if (!refs.some((ref) => ref.digest === digest))
        return { kind: "payload", expected: "no payload that the event does not name", found: digest.slice(0, 80) };
    }
    for (const ref of refs) {
      const inline = metadata.payloads.get(ref.digest);
      if (inline === undefined && known.has(ref.digest)) continue;
      const finding = await this.#bytesFinding("payload", ref, inline);
      if (finding !== null) return finding;
      known.set(ref.digest, inline);
    }
    if (event.type !== "started" || this.#configs.has(event.configDigest)) return null;
    const finding = await this.#bytesFinding("config", { digest: event.configDigest }, undefined);
    if (finding === null) this.#configs.add(event.configDigest);
    return finding;
  }

  /** Policy's verdicts stand twice in the record: as items, and stamped on the plan. A redacted plan may have lost its ids. */
  async #planFinding(
    event: DispatchEvent,
    flags: readonly string[],
    known: KnownPayloads,
  ): Promise<Omit<Finding, "revision"> | null> {
    if (event.type !== "outcome" || event.class !== "policy" || flags.includes("redacted")) return null;
    const { digest } = event.payload;
    const bytes = await this.#bytesOf(digest, known.get(digest));
    const stamped = bytes === null ? [] : stampedDecisions(bytes);
    const recorded = event.items.map(({ decision }) => decision);
    if (stamped.join() === recorded.join()) return null;
    return { kind: "decision", expected: `items as stamped: ${stamped.join(", ")}`, found: recorded.join(", ") };
  }

  async #bytesOf(digest: Digest, inline: string | undefined): Promise<Uint8Array | null> {
    return inline === undefined ? this.#store.readBlob(digest) : Buffer.from(inline, "base64");
  }

  async #bytesFinding(
    domain: DigestDomain,
    ref: { readonly digest: Digest; readonly size?: number },
    inline: string | undefined,
  ) {
    const bytes = await this.#bytesOf(ref.digest, inline);
    if (bytes === null)
      return { kind: "payload" as const, expected: ref.digest, found: `no ${domain} under this digest` };
    const found = digestOf(domain, bytes);
    if (found !== ref.digest) return { kind: "payload" as const, expected: ref.digest, found };
    if (inline !== undefined && Buffer.from(bytes).toString("base64") !== inline)
      return { kind: "payload" as const, expected: "base64", found: "another spelling of the same bytes" };
    if (ref.size === undefined || ref.size === bytes.byteLength) return null;
    return { kind: "payload" as const, expected: `${ref.size} bytes`, found: `${bytes.byteLength} bytes` };
  }
}

/** Does the event carry payload bytes, or refer to any? */
function hasBytes({ event, metadata }: Read): boolean {
  return metadata.payloads.size > 0 || refsOf(event).length > 0;
}

function readRecorded(recorded: RecordedEvent): Read | Omit<Finding, "revision"> {
  const decoded = decodeEvent(recorded.type, recorded.data);
  if (!("event" in decoded)) return { kind: decoded.kind, expected: "an event of this version", found: decoded.found };
  try {
    const metadata = readMetadata(JSON.parse(recorded.metadata));
    if (!("unknownVersion" in metadata)) return { event: decoded.event, metadata };
    return {
      kind: "unknown_version",
      expected: "schema version 1",
      found: `schema version ${metadata.unknownVersion}`,
    };
  } catch (error) {
    const found = error instanceof Undecodable ? error.message : "metadata is no JSON";
    return { kind: "undecodable", expected: "metadata of this version", found };
  }
}

/** What stands on the items of a plan; nothing for bytes that are no plan. */
function stampedDecisions(bytes: Uint8Array): readonly string[] {
  try {
    return readPlan(payloadFromBytes(bytes)).map(({ incoming }) => incoming);
  } catch (error) {
    if (error instanceof HookledgerError) return [];
    throw error;
  }
}

/** An event that says what the chain came to: where the machine comes to something else, the decision diverges. */
function isConclusion(event: DispatchEvent): boolean {
  return event.type === "decided" || (event.type === "aborted" && event.cause === "hook_error");
}

function refsOf(event: DispatchEvent): readonly Ref[] {
  if (event.type === "started") return [event.input];
  if (event.type !== "outcome") return [];
  const payload = "payload" in event && event.payload !== undefined ? [event.payload] : [];
  const set = "set" in event && event.set !== undefined ? event.set : {};
  return [...payload, ...[set.content, set.cancelReason, set.metadata].filter((ref) => ref !== undefined)];
}
