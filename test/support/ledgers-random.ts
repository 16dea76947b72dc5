/** Logs that a test made up, recorded as a real ledger: real digests, payloads inline and in the blob table, sealed. */
import type { Digest, DispatchEvent, PolicyItem, Ref } from "#src/core/events.js";
import type { Json } from "#src/payload/canonical-json.js";
import { openMemoryStore } from "#src/store/memory.js";
import { at, configBlob, type Kept, kept, keptJson, record, ulidOf } from "./ledger.js";
import { type LedgerRows, rowsOf } from "./ledgers.js";

export type RandomLedger = {
  /** Names the dispatch. */
  readonly n: number;
  readonly log: readonly DispatchEvent[];
  readonly session?: string;
};

/** One stream a log. */
export async function ledgerOf(...dispatches: readonly RandomLedger[]): Promise<LedgerRows> {
  const store = openMemoryStore({ writer: ulidOf(0) });
  const config = configBlob({ settings: {} });
  for (const { n, log, session } of dispatches) {
    const { events, kept } = recordable(log, ulidOf(n), config.digest);
    await record(store, {
      n,
      ...(session === undefined ? {} : { session, turn: "turn 1" }),
      happenings: events.map((event, place) => at(place, event)),
      kept,
      blobs: [config],
    });
  }
  return rowsOf(store);
}

type Recordable = { readonly events: readonly DispatchEvent[]; readonly kept: readonly Kept[] };

/** The words that stand for payloads become payloads of the hook point. */
function recordable(log: readonly DispatchEvent[], dispatchId: string, configDigest: Digest): Recordable {
  const [first] = log;
  const payloads = first?.type === "started" && first.composition !== "chain" ? HANDLER_WORDS : new Words(log);
  const all = new Map<Digest, Kept>();
  const events = log.map((event): DispatchEvent => {
    payloads.hear(event);
    const real: DispatchEvent = JSON.parse(JSON.stringify(event), (_key, value: unknown) =>
      typeof value === "string" && value.startsWith("sha256:") ? payloads.of(value).ref.digest : value,
    );
    const realRefs = refsIn(real);
    for (const [place, { digest }] of refsIn(event).entries()) {
      const payload = payloads.of(digest);
      Object.assign(realRefs[place]!, payload.ref);
      all.set(payload.ref.digest, payload);
    }
    return real.type === "started" ? { ...real, dispatchId, configDigest } : real;
  });
  return { events, kept: [...all.values()] };
}

/** Of runs of handlers, by what they begin with (see `driver-handlers`). */
const HANDLER_WORDS = {
  hear() {},
  of(digest: string): Kept {
    const word = digest.slice("sha256:".length);
    const said = word.slice(2);
    // Every third is too large to travel with its event.
    const text = word.length % 3 === 0 ? said.padEnd(5000, ".") : said;
    if (word.startsWith("r:")) return keptJson({ handled: true, text });
    if (word.startsWith("c:")) return keptJson(text);
    if (word.startsWith("{")) return keptJson(JSON.parse(word) as Json);
    const payload = word.startsWith("p:") ? { text } : { mediaUrl: "original" };
    return keptJson({ context: { channelId: "chat" }, event: { kind: "final", payload } });
  },
};

/** What the words of a log stand for. Where the point has nothing mutable, a transform leaves what it saw under another word. */
class Words {
  readonly #point: string;
  readonly #items: readonly PolicyItem[];
  readonly #shadows: ReadonlySet<number>;
  readonly #payloads = new Map<string, Kept>();
  #current: Kept | undefined;

  constructor(log: readonly DispatchEvent[]) {
    const [first] = log;
    if (first?.type !== "started") throw new Error("a log begins with its start");
    this.#point = first.point;
    this.#shadows = new Set(first.subscribers.flatMap(({ index, shadow }) => (shadow === true ? index : [])));
    this.#items = log.flatMap((event) => (event.type === "outcome" && event.class === "policy" ? event.items : []));
  }

  hear(event: DispatchEvent): void {
    const word = refIn(event)?.digest;
    if (word === undefined || event.type === "decided") return;
    const immutable = this.#point !== "pre-model-call" && this.#current !== undefined;
    if (event.type !== "outcome") this.#take(word, this.#made(word, false));
    else if (event.class === "policy") this.#take(word, this.#made(word, true));
    else if (!this.#shadows.has(event.index)) this.#take(word, immutable ? this.#current : this.#made(word, false));
  }

  of(word: string): Kept {
    return this.#payloads.get(word) ?? (this.#point === "pre-model-call" ? this.#made(word, false) : this.#current!);
  }

  #take(word: string, payload: Kept | undefined): void {
    if (payload === undefined) return;
    this.#payloads.set(word, payload);
    this.#current = payload;
  }

  #made(word: string, stamped: boolean): Kept {
    // Every third is too large to travel with its event.
    const text = word.length % 3 === 0 ? word.padEnd(5000, ".") : word;
    switch (this.#point) {
      case "pre-model-call":
        return kept({ preModelCall: { messages: [{ role: "ROLE_USER", content: [{ text: { text } }] }] } });
      case "plan-ready": {
        const items = this.#items.map(({ itemId, decision }) => ({
          id: itemId,
          decision: stamped ? DECISIONS[decision] : DECISIONS.pending,
        }));
        return kept({ planReady: { plan: { turnId: text, items } } });
      }
      default:
        return kept({ preToolCall: { call: { id: "c1", toolName: text } } });
    }
  }
}

const DECISIONS = {
  pending: "PLAN_DECISION_PENDING",
  allow: "PLAN_DECISION_ALLOW",
  ask: "PLAN_DECISION_ASK",
  deny: "PLAN_DECISION_DENY",
} as const;

function refsIn(event: DispatchEvent): readonly Ref[] {
  const ref = refIn(event);
  const set = event.type === "outcome" && "set" in event && event.set !== undefined ? Object.values(event.set) : [];
  return ref === undefined ? set : [ref, ...set];
}

function refIn(event: DispatchEvent): Ref | undefined {
  if (event.type === "started") return event.input;
  return event.type === "outcome" && "payload" in event ? event.payload : undefined;
}
