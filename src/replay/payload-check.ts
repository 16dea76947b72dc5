/** What an event says of payloads, against their bytes. Its own words are proven elsewhere; these are what it refers to. */
import type { Digest, DispatchEvent, Started } from "../core/events.js";
import type { State } from "../core/state.js";
import type { BlobRead } from "../payload/archive/types.js";
import { type DigestDomain, digest as digestOf } from "../payload/digest.js";
import type { EventStore } from "../store/port.js";
import type { ReadMetadata } from "../store/record/metadata.js";
import { chainPayloads } from "./payload-check-chain.js";
import { handlerPayloads } from "./payload-check-handlers.js";
import { amiss, type PayloadFinding, type PayloadRules } from "./payload-check-rules.js";
import { refsOf } from "./payload-refs.js";

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
    const rules = started.composition === "chain" ? chainPayloads : handlerPayloads;
    const bytesOf = async (digest: Digest) => {
      const found = await this.#bytesOf(digest, known.get(digest)?.inline);
      return found.kind === "found" ? found.bytes : null;
    };
    return (
      (await this.#bytesFinding(read, rules, started, known)) ??
      (await rules.eventFinding(read.event, { before, started, bytesOf }))
    );
  }

  /** Everything that the event refers to is there and is what its digest says; everything it carries is referred to. */
  async #bytesFinding({ event, metadata }: Read, rules: PayloadRules, started: Started, known: KnownPayloads) {
    const refs = refsOf(event);
    for (const digest of metadata.payloads.keys()) {
      if (!refs.some(({ ref }) => ref.digest === digest))
        return amiss("no payload that the event does not name", digest.slice(0, 80));
    }
    for (const { ref } of refs) {
      const inline = metadata.payloads.get(ref.digest);
      if (inline !== undefined || !known.has(ref.digest)) {
        const read = await this.#bytesOf(ref.digest, inline);
        if (read.kind !== "found") return absent("payload", ref.digest, read);
        const { bytes } = read;
        const finding =
          digestFinding("payload", ref.digest, bytes) ??
          spellingFinding(bytes, inline) ??
          rules.bytesFinding(bytes, started);
        if (finding !== null) return finding;
        known.set(ref.digest, { size: bytes.byteLength, inline });
      }
      const size = known.get(ref.digest)?.size;
      if (ref.size !== size) return amiss(`${ref.size} bytes`, `${size} bytes`);
      if (ref.encoding !== rules.encoding) return amiss(`an encoding ${rules.encoding}`, ref.encoding);
    }
    if (event.type !== "started" || this.#configs.has(event.configDigest)) return null;
    const config = await this.#store.readBlob(event.configDigest);
    if (config.kind !== "found") return absent("config", event.configDigest, config);
    const finding = digestFinding("config", event.configDigest, config.bytes);
    if (finding === null) this.#configs.add(event.configDigest);
    return finding;
  }

  async #bytesOf(digest: Digest, inline: string | undefined): Promise<BlobRead> {
    return inline === undefined
      ? this.#store.readBlob(digest)
      : { kind: "found", bytes: Buffer.from(inline, "base64") };
  }
}

function absent(domain: DigestDomain, digest: Digest, read: Exclude<BlobRead, { kind: "found" }>): PayloadFinding {
  return amiss(digest, read.kind === "missing" ? `no ${domain} under this digest` : read.detail);
}

function digestFinding(domain: DigestDomain, digest: Digest, bytes: Uint8Array): PayloadFinding | null {
  const found = digestOf(domain, bytes);
  return found === digest ? null : amiss(digest, found);
}

function spellingFinding(bytes: Uint8Array, inline: string | undefined): PayloadFinding | null {
  const isPlain = inline === undefined || Buffer.from(bytes).toString("base64") === inline;
  return isPlain ? null : amiss("base64", "another spelling of the same bytes");
}
