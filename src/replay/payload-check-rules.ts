import type { Digest, DispatchEvent, Ref, Started } from "../core/events.js";
import type { State } from "../core/state.js";

export type PayloadFinding = {
  readonly kind: "payload" | "decision";
  readonly expected: string;
  readonly found: string;
};

/** Where an event stands. */
export type EventPlace = {
  readonly before: State;
  readonly started: Started;
  /** Of a payload that is proven; null where the store has lost it since. */
  readonly bytesOf: (digest: Digest) => Promise<Uint8Array | null>;
};

/** What payloads of one kind of dispatch must be, beyond bytes that their digests name. */
export interface PayloadRules {
  readonly encoding: Ref["encoding"];
  bytesFinding(bytes: Uint8Array, started: Started): PayloadFinding | null;
  /** All that the event refers to is proven. */
  eventFinding(event: DispatchEvent, place: EventPlace): Promise<PayloadFinding | null>;
}

export function amiss(expected: string, found: string): PayloadFinding {
  return { kind: "payload", expected, found };
}
