/** What the events of one dispatch leave unsaid: its chain, what each subscriber was given, and why it denied. */
import type { Category, Digest, DispatchEvent, Settlement, Started, Subscriber } from "../core/events.js";
import { failureOf } from "../core/state.js";

type Denial = { readonly category: Category | null; readonly message: string | null };

const UNEXPLAINED: Denial = { category: null, message: null };

export class DispatchContext {
  #started: Started | null = null;
  readonly #saw = new Map<number, Digest>();
  readonly #denials = new Map<number, Denial>();

  get point(): string | null {
    return this.#started?.point ?? null;
  }

  /** Events in the order of the stream. */
  take(event: DispatchEvent): void {
    switch (event.type) {
      case "started":
        this.#started = event;
        return;
      case "subscriber-invoked":
        this.#saw.set(event.index, event.saw);
        return;
      case "outcome":
      case "timeout": {
        const denial = denialOf(event);
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
}

function denialOf(settlement: Settlement): Denial | null {
  const error = failureOf(settlement);
  if (error !== null) return error;
  if (settlement.type === "timeout") return null;
  if (settlement.class === "deny") return { category: null, message: settlement.reason ?? null };
  if (settlement.class !== "policy") return null;
  return { category: null, message: `policy denied every item of the plan (${settlement.items.length})` };
}
