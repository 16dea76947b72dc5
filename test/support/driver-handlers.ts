/**
 * Plays a script of handlers through the machine as a dispatcher would, on a virtual clock. Pure. Wherever a dispatcher's own
 * timing decides what is recorded first, the schedule picks, so that a test owns every race.
 */
import type { Digest, DispatchEvent, Outcome, Settlement } from "#src/core/events.js";
import { evolve, next } from "#src/core/machine.js";
import { type Verdict, verdictOf } from "#src/core/result.js";
import { definedBy } from "#src/core/rewrite.js";
import { type Begun, inFlight, NEW, type State } from "#src/core/state.js";
import { aborted, cancelled, claimed, declined, defined, failed, handlers, replaced, timeout } from "./given.js";
import type { Fields, Foretold, Meaning, Role, Script } from "./oracle-handlers.js";

export type RunPlay = {
  readonly log: readonly DispatchEvent[];
  readonly state: Begun;
  readonly verdict: Verdict;
  /** The run in the oracle's terms. */
  readonly told: Foretold;
};

/** `schedule`: one number for each race; all 0 when it is used up: settlements first, in order. */
export function playRun(script: Script, schedule: readonly number[] = []): RunPlay {
  return new Player(script, schedule).play();
}

export function startOf({ composition, roles, blocks }: Script) {
  const links = roles.map(({ id, timeoutMs, skipped }) => `${id}@${timeoutMs ?? "none"}${skipped ? "~skip" : ""}`);
  return handlers(composition, links, blocks ? { flags: ["blocks_on_failure"] } : {});
}

type Running = { readonly dueAtMs: number; readonly settlement: Settlement };

class Player {
  readonly #script: Script;
  readonly #schedule: readonly number[];
  readonly #log: DispatchEvent[] = [];
  readonly #running = new Map<number, Running>();
  readonly #calls: { readonly index: number; readonly saw: Digest }[] = [];
  #state: State = NEW;
  #races = 0;
  #nowMs = 0;

  constructor(script: Script, schedule: readonly number[]) {
    this.#script = script;
    this.#schedule = schedule;
  }

  play(): RunPlay {
    let state = this.#record(startOf(this.#script));
    while (state.kind === "open") {
      const { cancelAtMs } = this.#script;
      if (cancelAtMs !== null && cancelAtMs <= this.#nowMs) {
        state = this.#record(aborted("cancelled", ...inFlight(state)));
        break;
      }
      const actions = this.#actions(state);
      const act = actions[actions.length < 2 ? 0 : (this.#schedule[this.#races++] ?? 0) % actions.length];
      if (act === undefined) this.#nowMs = Math.min(...this.#due(), cancelAtMs ?? Number.POSITIVE_INFINITY);
      else state = act();
    }
    if (state.kind === "open") throw new Error("the run has no end");
    return { log: this.#log, state, verdict: verdictOf(state), told: this.#told(state) };
  }

  #due(): readonly number[] {
    return [...this.#running.values()].map(({ dueAtMs }) => dueAtMs);
  }

  /** What could be recorded at this instant. */
  #actions(state: Begun): readonly (() => Begun)[] {
    const due = [...this.#running]
      .filter(([, { dueAtMs }]) => dueAtMs <= this.#nowMs)
      .map(([index, { settlement }]) => () => {
        this.#running.delete(index);
        return this.#record(settlement);
      });
    const step = next(state);
    switch (step.kind) {
      case "invoke": {
        const index = step.indexes[0]!;
        return [...due, () => this.#invoke(index, step.payload)];
      }
      case "conclude":
        return [...due, () => this.#record(step.event)];
      case "wait":
      case "settled":
        return due;
    }
  }

  #invoke(index: number, saw: Digest): Begun {
    const { conduct, timeoutMs } = this.#script.roles[index]!;
    const deadline = timeoutMs ?? Number.POSITIVE_INFINITY;
    this.#calls.push({ index, saw });
    const inTime = conduct.does !== "hang" && conduct.afterMs < deadline;
    this.#running.set(index, {
      dueAtMs: this.#nowMs + (inTime ? conduct.afterMs : deadline),
      settlement: inTime ? settlementOf(index, this.#script, conduct) : timeout(index, deadline),
    });
    return this.#record({ type: "subscriber-invoked", index, saw });
  }

  #record(event: DispatchEvent): Begun {
    const after = evolve(this.#state, event);
    if (after.kind === "violation") throw new Error(`refused what it had asked for: ${JSON.stringify(after)}`);
    this.#log.push(event);
    this.#state = after;
    return after;
  }

  #told(state: Exclude<Begun, { kind: "open" }>): Foretold {
    const verdict = verdictOf(state);
    const end = endOf(state, this.#script);
    const says = (index: number | null) => (index === null ? undefined : meaningOf(this.#script.roles[index]!));
    const claimer = end === "claimed" ? says(state.author) : undefined;
    const author = this.#script.composition === "waterfall" ? says(state.author) : undefined;
    return {
      end,
      by: end === "claimed" || end === "cancelled" || end === "blocked" ? verdict.decidedBy : null,
      result: claimer?.says === "claim" ? claimer.result : null,
      fields: this.#script.composition === "rewrite" ? mergedFields(state, this.#script) : {},
      payload: author?.says === "replace" ? author.payload : null,
      reason: end === "cancelled" ? verdict.reason : null,
      calls: this.#calls.map(({ index, saw }) => ({ id: this.#script.roles[index]!.id, saw: payloadOf(saw) })),
      failures: verdict.hookErrors.map(({ subscriber, category }) => ({
        id: subscriber,
        how: category === "TIMEOUT" ? "timed out" : "failed",
      })),
      endedAtMs: this.#nowMs,
    };
  }
}

function meaningOf({ conduct }: Role): Meaning | undefined {
  return conduct.does === "answer" ? conduct.means : undefined;
}

function endOf(state: Exclude<Begun, { kind: "open" }>, { composition }: Script): Foretold["end"] {
  if (state.kind === "aborted") return "aborted";
  const { decision, decidedBy } = state.decided;
  switch (composition) {
    case "claim":
      return decidedBy === "kernel:default" ? "declined" : "claimed";
    case "notify":
      return "notified";
    case "rewrite":
    case "waterfall": {
      if (decision === "allow") return "sent";
      const slot = state.slots[state.started.subscribers.find(({ id }) => id === decidedBy)?.index ?? -1];
      return typeof slot === "object" && slot.type === "outcome" && slot.class === "cancelled"
        ? "cancelled"
        : "blocked";
    }
  }
}

function mergedFields(state: Begun, { roles }: Script): Fields {
  const fields = (["content", "cancelReason", "metadata"] as const).map((field) => {
    const by = definedBy(state, field);
    const means = by === null ? undefined : meaningOf(roles[by]!);
    return means?.says === "define" ? { [field]: means.fields[field] } : {};
  });
  return Object.assign({}, ...fields) as Fields;
}

/** A digest is a word: `p:` and the payload. */
function payloadOf(saw: Digest): string | null {
  const word = saw.slice("sha256:".length);
  return word === "input" ? null : word.slice("p:".length);
}

function settlementOf(
  index: number,
  { composition }: Script,
  conduct: Exclude<Role["conduct"], { does: "hang" }>,
): Outcome {
  if (conduct.does === "throw") return failed(index);
  const { means } = conduct;
  switch (means.says) {
    case "nothing":
      return composition === "notify" ? { type: "outcome", index, class: "ack" } : declined(index);
    case "claim":
      return claimed(index, `r:${String(means.result)}`);
    case "define": {
      const { content, cancelReason, metadata } = means.fields;
      const words = {
        ...(content === undefined ? {} : { content: `c:${content}` }),
        ...(cancelReason === undefined ? {} : { cancelReason: `c:${cancelReason}` }),
        ...(metadata === undefined ? {} : { metadata: JSON.stringify(metadata) }),
      };
      if (!means.cancel) return defined(index, words);
      return Object.keys(words).length === 0 ? cancelled(index) : cancelled(index, words);
    }
    case "replace":
      return replaced(index, `p:${String(means.payload)}`);
    case "cancel": {
      const { reason } = means;
      return reason === undefined ? cancelled(index) : { type: "outcome", index, class: "cancelled", reason };
    }
    case "unusable":
      return failed(index);
  }
}
