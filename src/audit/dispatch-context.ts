/** What the events of one dispatch leave unsaid: its chain, what each subscriber was given, and why it denied. */
import type { Category, Digest, DispatchEvent, Outcome, Settlement, Started, Subscriber } from "../core/events.js";
import { failureOf } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import { readJson } from "../payload/json-text.js";

/** Base64 of the payloads that an event carries. */
type Carried = ReadonlyMap<string, string>;

type Denial = { readonly category: Category | null; readonly message: string | null };

const UNEXPLAINED: Denial = { category: null, message: null };

export class DispatchContext {
  #started: Started | null = null;
  readonly #saw = new Map<number, Digest>();
  readonly #denials = new Map<number, Denial>();
  /** Cancel reasons of a rewrite, by digest: payloads, which events carry but once. */
  readonly #reasons = new Map<Digest, string>();
  #lastReason: string | undefined;

  get point(): string | null {
    return this.#started?.point ?? null;
  }

  /** Events in the order of the stream. */
  take(event: DispatchEvent, carried: Carried): void {
    switch (event.type) {
      case "started":
        this.#started = event;
        return;
      case "subscriber-invoked":
        this.#saw.set(event.index, event.saw);
        return;
      case "outcome":
      case "timeout": {
        if (event.type === "outcome") this.#takeReason(event, carried);
        const denial = this.#denialOf(event);
        if (denial !== null) this.#denials.set(event.index, denial);
        return;
      }
      case "aborted":
      case "decided":
        return;
    }
  }

  subscriber(index: number): Subscriber | null {
    return this.#started?.subscribers[index] ?? null;
  }

  named(id: string): Subscriber | null {
    return this.#started?.subscribers.find((subscriber) => subscriber.id === id) ?? null;
  }

  saw(index: number): Digest | null {
    return this.#saw.get(index) ?? null;
  }

  /** Why this subscriber denied: its own reason, or the failure that counts as a deny. */
  denialBy(id: string): Denial {
    const index = this.named(id)?.index;
    return (index === undefined ? undefined : this.#denials.get(index)) ?? UNEXPLAINED;
  }

  /** The one that was defined last counts. Undefined where none was, or no event carries it. */
  cancelReasonOf({ reason }: Extract<Outcome, { class: "cancelled" }>): string | undefined {
    return reason ?? this.#lastReason;
  }

  #takeReason(event: Outcome, carried: Carried): void {
    const ref = "set" in event ? event.set?.cancelReason : undefined;
    if (ref === undefined) return;
    const base64 = carried.get(ref.digest);
    const text = base64 === undefined ? undefined : textIn(base64);
    if (text !== undefined) this.#reasons.set(ref.digest, text);
    this.#lastReason = this.#reasons.get(ref.digest);
  }

  #denialOf(settlement: Settlement): Denial | null {
    const error = failureOf(settlement);
    if (error !== null) return error;
    if (settlement.type === "timeout") return null;
    if (settlement.class === "deny") return { category: null, message: settlement.reason ?? null };
    if (settlement.class === "cancelled") return { category: null, message: this.cancelReasonOf(settlement) ?? null };
    if (settlement.class !== "policy") return null;
    return { category: null, message: `policy denied every item of the plan (${settlement.items.length})` };
  }
}

function textIn(base64: string): string | undefined {
  try {
    const json = readJson(Buffer.from(base64, "base64").toString("utf8"), 1);
    return typeof json === "string" ? json.toWellFormed() : undefined;
  } catch (error) {
    if (error instanceof HookledgerError) return undefined;
    throw error;
  }
}
