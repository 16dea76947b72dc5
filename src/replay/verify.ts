/** Proves that a recorded dispatch is what its own events come to, and that nobody touched them since. */
import type { DispatchEvent, Started } from "../core/events.js";
import { evolve } from "../core/machine.js";
import { NEW, type State } from "../core/state.js";
import type { EventStore, RecordedEvent, StreamEvents } from "../store/port.js";
import { decodeEvent } from "../store/record/decode.js";
import { eventIds } from "../store/record/event-id.js";
import { Undecodable } from "../store/record/fields.js";
import { metadataReprinter, type ReadMetadata, readMetadata } from "../store/record/metadata.js";
import { isUlid } from "../store/ulid.js";
import { sealsTo } from "./chain-check.js";
import { headFinding } from "./head-check.js";
import { compositionAt } from "./hooks.js";
import { hasBytes, type KnownPayloads, PayloadCheck } from "./payload-check.js";

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
type Read = { readonly event: DispatchEvent; readonly metadata: ReadMetadata };

/** Verifies streams of one store. Keeps nothing but the digests of configurations that it has seen. */
export class Verifier {
  readonly #payloads: PayloadCheck;
  readonly #printMetadata = metadataReprinter();

  constructor(store: EventStore) {
    this.#payloads = new PayloadCheck(store);
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
      const stranger = revision === 0 ? strangerFinding(evolved.started) : null;
      if (stranger !== null) return found(stranger);
      if (recorded.id !== idOf(revision))
        return found({ kind: "illegal_event", expected: `event id ${idOf(revision)}`, found: recorded.id });
      if (!sealsTo(recorded, read.event, read.metadata, chain, this.#printMetadata)) {
        return found({ kind: "chain", expected: "the event as it was sealed", found: "another text or another chain" });
      }
      const amiss = hasBytes(read) ? await this.#payloads.finding(read, state, evolved.started, known) : null;
      if (amiss !== null) return found(amiss);
      chain = read.metadata.chain;
      position = recorded.position;
      state = evolved;
    }
    const finding = headFinding(stream, chain);
    return { state, finding: finding === null ? null : { revision: state.revision, ...finding } };
  }
}

/**
 * As with compositions: hooks are closed and none is ever taken back, so an unknown one is not of this version's making, and its
 * payloads could not be looked into. Each is composed in one way only.
 */
function strangerFinding({ point, composition }: Started): Omit<Finding, "revision"> | null {
  const expected = compositionAt(point);
  if (expected === undefined) {
    return { kind: "illegal_event", expected: "a hook point that this version knows", found: point.slice(0, 80) };
  }
  if (expected === composition) return null;
  return { kind: "illegal_event", expected: `the composition ${expected} at ${point}`, found: composition };
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

/** An event that says what the chain came to: where the machine comes to something else, the decision diverges. */
function isConclusion(event: DispatchEvent): boolean {
  return event.type === "decided" || (event.type === "aborted" && event.cause === "hook_error");
}
