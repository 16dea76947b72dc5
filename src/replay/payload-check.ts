/** What an event says of payloads, against their bytes. Its own words are proven elsewhere; these are what it refers to. */
import type { Digest, DispatchEvent, Ref, Started } from "../core/events.js";
import { HOOK_POINTS } from "../core/points.js";
import type { State } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import type { BlobRead } from "../payload/archive/types.js";
import { immutableDifference } from "../payload/difference.js";
import { type DigestDomain, digest as digestOf } from "../payload/digest.js";
import { type Payload, payloadFromBytes } from "../payload/payload.js";
import { readPlan } from "../payload/plan.js";
import type { EventStore } from "../store/port.js";
import type { ReadMetadata } from "../store/record/metadata.js";

type PayloadFinding = {
  readonly kind: "payload" | "decision";
  readonly expected: string;
  readonly found: string;
};

/** Payloads of one stream that are proven: `size` in bytes, and the base64 text of those that its events carry. */
export type KnownPayloads = Map<Digest, { readonly size: number; readonly inline: string | undefined }>;

type Read = { readonly event: DispatchEvent; readonly metadata: ReadMetadata };

/** Does the event carry payload bytes, or refer to any? */
export function hasBytes({ event, metadata }: Read): boolean {
  return metadata.payloads.size > 0 || refsOf(event).length > 0;
}

/** Checks the payloads of one store. Keeps nothing but the digests of configurations that it has seen. */
export class PayloadCheck {
  readonly #store: EventStore;
  readonly #configs = new Set<Digest>();

  constructor(store: EventStore) {
    this.#store = store;
  }

  /** `before`: where the dispatch stood when the event came. Adds to `known` what it has proven. */
  async finding(read: Read, before: State, started: Started, known: KnownPayloads): Promise<PayloadFinding | null> {
    return (
      (await this.#bytesFinding(read, started, known)) ??
      (await this.#planFinding(read.event, started, known)) ??
      (await this.#transformFinding(read.event, before, known))
    );
  }

  /** Everything that the event refers to is there and is what its digest says; everything it carries is referred to. */
  async #bytesFinding({ event, metadata }: Read, started: Started, known: KnownPayloads) {
    const refs = refsOf(event);
    for (const digest of metadata.payloads.keys()) {
      if (!refs.some((ref) => ref.digest === digest))
        return amiss("no payload that the event does not name", digest.slice(0, 80));
    }
    for (const ref of refs) {
      const inline = metadata.payloads.get(ref.digest);
      if (inline !== undefined || !known.has(ref.digest)) {
        const read = await this.#bytesOf(ref.digest, inline);
        if (read.kind !== "found") return absent("payload", ref.digest, read);
        const { bytes } = read;
        const finding = digestFinding("payload", ref.digest, bytes) ?? contentFinding(bytes, inline, started.point);
        if (finding !== null) return finding;
        known.set(ref.digest, { size: bytes.byteLength, inline });
      }
      const size = known.get(ref.digest)?.size;
      if (ref.size !== size) return amiss(`${ref.size} bytes`, `${size} bytes`);
      // A chain hands on HookPayloads and nothing else.
      if (ref.encoding !== "proto") return amiss("an encoding proto", ref.encoding);
    }
    if (event.type !== "started" || this.#configs.has(event.configDigest)) return null;
    const config = await this.#store.readBlob(event.configDigest);
    if (config.kind !== "found") return absent("config", event.configDigest, config);
    const finding = digestFinding("config", event.configDigest, config.bytes);
    if (finding === null) this.#configs.add(event.configDigest);
    return finding;
  }

  /** Policy's verdicts stand twice in the record: as items, and stamped on the plan. A redacted plan may have lost its ids. */
  async #planFinding(event: DispatchEvent, started: Started, known: KnownPayloads): Promise<PayloadFinding | null> {
    if (event.type !== "outcome" || event.class !== "policy" || started.flags.includes("redacted")) return null;
    const stamped = stampedDecisions(payloadOf(await this.#knownBytes(event.payload.digest, known)));
    const recorded = event.items.map(({ decision }) => decision);
    if (stamped.join() === recorded.join()) return null;
    return { kind: "decision", expected: `items as stamped: ${stamped.join(", ")}`, found: recorded.join(", ") };
  }

  /**
   * A transform with a say saw what the chain had come to, and may have changed the mutable fields of that alone. Redacted
   * copies are no exception: redaction looks at one value at a time, so what was equal before it is equal behind it.
   */
  async #transformFinding(event: DispatchEvent, before: State, known: KnownPayloads): Promise<PayloadFinding | null> {
    if (event.type !== "outcome" || event.class !== "transformed" || before.kind === "new") return null;
    if (before.started.subscribers[event.index]?.shadow === true || event.payload.digest === before.payload)
      return null;
    const saw = payloadOf(await this.#knownBytes(before.payload, known));
    const left = payloadOf(await this.#knownBytes(event.payload.digest, known));
    if (saw === null || left === null) return amiss("the payloads before and behind a transform", "not both of them");
    const changed = immutableDifference(saw, left);
    if (changed === undefined) return null;
    const { mutable } = HOOK_POINTS[saw.point];
    return amiss(`changes of ${mutable.length === 0 ? "nothing" : mutable.join(", ")} only`, `another ${changed}`);
  }

  async #knownBytes(digest: Digest, known: KnownPayloads): Promise<Uint8Array | null> {
    const read = await this.#bytesOf(digest, known.get(digest)?.inline);
    return read.kind === "found" ? read.bytes : null;
  }

  async #bytesOf(digest: Digest, inline: string | undefined): Promise<BlobRead> {
    return inline === undefined
      ? this.#store.readBlob(digest)
      : { kind: "found", bytes: Buffer.from(inline, "base64") };
  }
}

function amiss(expected: string, found: string): PayloadFinding {
  return { kind: "payload", expected, found };
}

function absent(domain: DigestDomain, digest: Digest, read: Exclude<BlobRead, { kind: "found" }>): PayloadFinding {
  return amiss(digest, read.kind === "missing" ? `no ${domain} under this digest` : read.detail);
}

function digestFinding(domain: DigestDomain, digest: Digest, bytes: Uint8Array): PayloadFinding | null {
  const found = digestOf(domain, bytes);
  return found === digest ? null : amiss(digest, found);
}

function contentFinding(bytes: Uint8Array, inline: string | undefined, point: string): PayloadFinding | null {
  if (inline !== undefined && Buffer.from(bytes).toString("base64") !== inline)
    return amiss("base64", "another spelling of the same bytes");
  const found = payloadOf(bytes)?.point ?? "no payload of any hook point";
  return found === point ? null : amiss(`a payload of ${point}`, found);
}

/** Null for bytes that are no HookPayload of one hook point. */
function payloadOf(bytes: Uint8Array | null): Payload | null {
  if (bytes === null) return null;
  try {
    return payloadFromBytes(bytes);
  } catch (error) {
    if (error instanceof HookledgerError) return null;
    throw error;
  }
}

/** What stands on the items of a plan; nothing where there is no plan, or one that policy could not have read. */
function stampedDecisions(payload: Payload | null): readonly string[] {
  if (payload?.point !== "plan-ready") return [];
  try {
    return readPlan(payload).map(({ incoming }) => incoming);
  } catch (error) {
    if (error instanceof HookledgerError) return [];
    throw error;
  }
}

function refsOf(event: DispatchEvent): readonly Ref[] {
  if (event.type === "started") return [event.input];
  if (event.type !== "outcome") return [];
  const payload = "payload" in event && event.payload !== undefined ? [event.payload] : [];
  const set = "set" in event && event.set !== undefined ? event.set : {};
  return [...payload, ...[set.content, set.cancelReason, set.metadata].filter((ref) => ref !== undefined)];
}
