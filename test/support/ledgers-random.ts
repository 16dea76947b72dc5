/** Logs that a test made up, recorded as a real ledger: real digests, payloads inline and in the blob table, sealed. */
import type { Digest, DispatchEvent, Outcome, Ref } from "#src/core/events.js";
import { digest } from "#src/payload/digest.js";
import { payloadFromView } from "#src/payload/payload.js";
import { openMemoryStore } from "#src/store/memory.js";
import { at, configBlob, type Kept, record, ulidOf } from "./ledger.js";
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

/** The words that stand for payloads become payloads. */
function recordable(log: readonly DispatchEvent[], dispatchId: string, configDigest: Digest): Recordable {
  const plan = log.find((event) => event.type === "outcome" && event.class === "policy");
  const kept = new Map<Digest, Kept>();
  const bytesOf = (word: string): Uint8Array => {
    if (plan?.type === "outcome" && plan.class === "policy" && plan.payload.digest === word) return planBytes(plan);
    // Every third is too large to travel with its event.
    return Buffer.from(word.length % 3 === 0 ? word.padEnd(5000, ".") : word);
  };
  const events = log.map((event): DispatchEvent => {
    const real: DispatchEvent = JSON.parse(JSON.stringify(event), (_key, value: unknown) => {
      if (typeof value === "string" && value.startsWith("sha256:")) return digest("payload", bytesOf(value));
      return value;
    });
    const ref = refIn(event);
    const realRef = refIn(real);
    if (ref !== undefined && realRef !== undefined) {
      const bytes = bytesOf(ref.digest);
      Object.assign(realRef, { size: bytes.byteLength });
      kept.set(realRef.digest, { ref: realRef, bytes });
    }
    return real.type === "started" ? { ...real, dispatchId, configDigest } : real;
  });
  return { events, kept: [...kept.values()] };
}

function refIn(event: DispatchEvent): Ref | undefined {
  if (event.type === "started") return event.input;
  return event.type === "outcome" && "payload" in event ? event.payload : undefined;
}

function planBytes({ items }: Extract<Outcome, { class: "policy" }>): Uint8Array {
  const decisions = { allow: "PLAN_DECISION_ALLOW", ask: "PLAN_DECISION_ASK", deny: "PLAN_DECISION_DENY" } as const;
  return payloadFromView({
    planReady: { plan: { items: items.map((item) => ({ id: item.itemId, decision: decisions[item.decision] })) } },
  }).bytes;
}
