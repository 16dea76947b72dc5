/** One delivery in custody, from its place in the lane to its end: attempts, what they leave known, and the waits between them. */

import type { Clock } from "../../dispatch/clock.js";
import { said } from "../../dispatch/said.js";
import type { DeliveryState } from "../../store/queue.js";
import type { HostReplyPayload } from "../facts.js";
import type { SendReceipt } from "../outbound/adapter.js";
import { abortOf, type DeliveryFailure, failureOf } from "../outbound/failure.js";
import { tellSent } from "../outbound/message-sent.js";
import type { Delivery } from "../outbound/options.js";
import { type CustodyRef, type Ended, type Failed, type PartiallyFailed, receiptsOf } from "../outbound/outcome.js";
import { receiptOf, send } from "../outbound/send.js";
import { contentOf } from "../outbound/transcript.js";
import { sentAccordingTo, timed } from "./channel.js";
import type { Custody } from "./custody.js";
import type { Lanes, Place } from "./lanes.js";
import { doubtOf, sendFailure } from "./not-sent.js";
import { backOff, MAX_RETRY_AFTER_MS, type RetryPolicy } from "./retry.js";
import { elapsedOrCut, settledOrCut } from "./waiting.js";

export type PursuitParts = {
  readonly custody: Custody;
  readonly lanes: Lanes;
  readonly clock: Clock;
  readonly retry: RetryPolicy;
  readonly random: () => number;
  /** ms */
  readonly sendTimeoutMs: number;
  /** Aborted when no new attempt is to begin. */
  readonly closing: AbortSignal;
  readonly complain: (text: string) => void;
  /** Told of each state in which the delivery is left for a while, or for ever. */
  readonly report: (outcome: Ended, state: CustodyRef["state"]) => void;
};

export type Pursued = {
  readonly id: string;
  readonly lane: string;
  readonly payload: HostReplyPayload;
  readonly delivery: Delivery;
  /** Begun so far. */
  readonly attempts: number;
  readonly receipts: readonly SendReceipt[];
  /** ms since 1970 */
  readonly dueAt: number;
};

type Step =
  | { readonly to: "wait" | "attempt" | "over" }
  /** `from`: the state that it is in. */
  | { readonly to: "retry"; readonly from: DeliveryState; readonly failure: DeliveryFailure }
  | { readonly to: "clear-up"; readonly failure: DeliveryFailure }
  | { readonly to: "take"; readonly receipts: readonly SendReceipt[]; readonly from: readonly DeliveryState[] };

const WAIT: Step = { to: "wait" };
const ATTEMPT: Step = { to: "attempt" };
const OVER: Step = { to: "over" };

export class Pursuit {
  readonly #parts: PursuitParts;
  readonly #pursued: Pursued;
  #place: Place;
  #attempts: number;
  #receipts: readonly SendReceipt[];
  #dueAt: number;
  #content: string;
  /** Ends the wait for its time, while there is one. */
  #nudge: AbortController | null = null;
  /** Ends the wait for the late answer of a channel, while there is one. */
  #late: AbortController | null = null;
  /** In how many parts it goes out, once an attempt has come to that. */
  #partCount: number | null = null;

  constructor(pursued: Pursued, place: Place, parts: PursuitParts) {
    this.#parts = parts;
    this.#pursued = pursued;
    this.#place = place;
    this.#attempts = pursued.attempts;
    this.#receipts = pursued.receipts;
    this.#dueAt = pursued.dueAt;
    this.#content = contentOf(pursued.payload);
  }

  /** `state`: as the queue has it; `attempting` is an attempt whose evidence this process has just made durable. Never rejects. */
  async run(state: "pending" | "attempting" | "unknown"): Promise<void> {
    try {
      let step = firstStep(state);
      while (step.to !== "over") step = await this.#take(step);
    } catch (fault) {
      this.#parts.complain(`delivery ${this.#pursued.id} is left as it is: ${said(fault)}`);
      this.#parts.report({ status: "failed", failure: failureOf("before-send", fault) }, "unknown");
    } finally {
      this.#place.leave();
    }
  }

  /** ms since 1970; null unless it waits for that time. */
  get waitsUntil(): number | null {
    return this.#nudge === null ? null : this.#dueAt;
  }

  /** Does it wait for an answer that may never come? */
  get inDoubt(): boolean {
    return this.#late !== null;
  }

  /** Looks again whether it is still to be sent, and when. */
  nudge(): void {
    this.#nudge?.abort();
  }

  /** Waits for no late answer any more: somebody has said that it is to be sent again. */
  sendAgain(): void {
    this.#late?.abort();
  }

  #take(step: Step): Promise<Step> | Step {
    switch (step.to) {
      case "wait":
        return this.#wait();
      case "attempt":
        return this.#attempt();
      case "retry":
        return this.#retry(step.failure, step.from);
      case "clear-up":
        return this.#clearUp(step.failure);
      case "take":
        return this.#takeReceipts(step.receipts, step.from);
      case "over":
        return step;
    }
  }

  /** For its turn in the lane, then for its time. */
  async #wait(): Promise<Step> {
    const { custody, clock, closing } = this.#parts;
    const { signal } = this.#pursued.delivery;
    const cuts = [signal, closing];
    this.#place.onStall(() => this.#report(failedWith(behind(), this.#receipts), "pending"));
    await settledOrCut(this.#place.reached, cuts);
    if (this.#place.first && this.#dueAt > clock.wall()) {
      this.#place.stall(true);
      const stillPending = await this.#dueOrCut(cuts);
      this.#place.stall(false);
      if (!stillPending) return this.#leaveAsItIs();
    }
    if (closing.aborted) return this.#leave(closed(), "pending");
    if (signal?.aborted) return this.#drop(["pending"]);
    try {
      if (!(await custody.begin(this.#pursued.id, this.#attempts + 1))) return await this.#leaveAsItIs();
    } catch (error) {
      this.#parts.complain(
        `delivery ${this.#pursued.id} is not attempted, its evidence cannot be written: ${said(error)}`,
      );
      return this.#leave(failureOf("before-send", error), "pending");
    }
    this.#attempts++;
    return ATTEMPT;
  }

  /** false: it is not to be sent any more, somebody says. */
  async #dueOrCut(cuts: readonly (AbortSignal | undefined)[]): Promise<boolean> {
    const { custody, clock, retry } = this.#parts;
    const longest = Math.max(retry.capMs, MAX_RETRY_AFTER_MS);
    for (;;) {
      const nudge = new AbortController();
      this.#nudge = nudge;
      await elapsedOrCut(Math.min(this.#dueAt - clock.wall(), longest), clock, [...cuts, nudge.signal]);
      this.#nudge = null;
      if (!nudge.signal.aborted || cuts.some((signal) => signal?.aborted)) return true;
      const row = await custody.read(this.#pursued.id);
      if (row?.state !== "pending") return false;
      this.#dueAt = Math.min(this.#dueAt, row.dueAt);
      if (this.#dueAt <= clock.wall()) return true;
    }
  }

  async #attempt(): Promise<Step> {
    const { custody, clock, sendTimeoutMs } = this.#parts;
    const { id, payload, delivery } = this.#pursued;
    if (delivery.signal?.aborted) return this.#drop(["attempting"]);
    const route = { ...delivery.route, adapter: timed(delivery.route.adapter, clock, sendTimeoutMs) };
    const { outcome, content } = await send(
      payload,
      { ...delivery, route },
      {
        receipts: this.#receipts,
        onBegin: (parts) => {
          this.#partCount = parts;
        },
        onPart: (receipts) => custody.progress(id, receipts),
      },
    );
    this.#content = content;
    const receipts = receiptsOf(outcome);
    if (receipts.length > this.#receipts.length) this.#receipts = receipts;
    switch (outcome.status) {
      case "sent":
        return this.#end(outcome, "sent", ["attempting"]);
      case "suppressed":
        return this.#end(outcome, "dropped", ["attempting"], `suppressed: ${outcome.reason}${byOf(outcome.by)}`);
      case "partial_failed":
      case "failed":
        return this.#failed(outcome);
    }
  }

  async #failed({ failure }: Failed | PartiallyFailed): Promise<Step> {
    const doubt = doubtOf(failure);
    switch (doubt.kind) {
      case "aborted":
        return this.#drop(["attempting"]);
      case "known":
        return { to: "retry", from: "attempting", failure };
      case "unknown": {
        const error = failure.message;
        await this.#parts.custody.settle(this.#pursued.id, ["attempting"], {
          state: "unknown",
          receipts: this.#receipts,
          error,
        });
        return doubt.answer === null ? { to: "clear-up", failure } : this.#lateAnswer(doubt.answer, failure);
      }
    }
  }

  /** Nobody waits for it, and nobody asks or sends again while it is under way, unless an operator says so. */
  async #lateAnswer(answer: Promise<unknown>, failure: DeliveryFailure): Promise<Step> {
    this.#report(failedWith(failure, this.#receipts), "unknown");
    this.#place.leave();
    const late = new AbortController();
    this.#late = late;
    await settledOrCut(answer, [late.signal]);
    this.#late = null;
    this.#place = this.#parts.lanes.enter(this.#pursued.lane);
    if (late.signal.aborted) {
      this.#dueAt = Math.floor(this.#parts.clock.wall());
      return WAIT;
    }
    return answer.then(
      // Also where an operator has just said that it is to be sent again: it has arrived.
      (value): Step => ({
        to: "take",
        receipts: [...this.#receipts, receiptOf(value)],
        from: ["unknown", "pending"],
      }),
      (thrown: unknown) => refusedLate(thrown),
    );
  }

  /** The channel is asked what became of an attempt. Where it cannot tell, an operator is to say. */
  async #clearUp(failure: DeliveryFailure): Promise<Step> {
    const { clock, sendTimeoutMs, complain, closing } = this.#parts;
    const { id, delivery } = this.#pursued;
    const { route, idempotencyKey } = delivery;
    await settledOrCut(this.#place.reached, [closing]);
    if (!this.#place.first) return this.#leave(failure, "unknown");
    const sent = await sentAccordingTo(route.adapter, idempotencyKey, this.#receipts, clock, sendTimeoutMs);
    if (sent === null) {
      complain(`nobody knows whether delivery ${id} was sent: see "hookledger queue list"`);
      return this.#leave(failure, "unknown");
    }
    if (sent.length > this.#receipts.length) return { to: "take", receipts: sent, from: ["unknown"] };
    return { to: "retry", from: "unknown", failure: { ...failure, at: "before-send" } };
  }

  /** More has gone out than was recorded. */
  async #takeReceipts(receipts: readonly SendReceipt[], from: readonly DeliveryState[]): Promise<Step> {
    this.#receipts = receipts;
    if (this.#partCount !== null && receipts.length >= this.#partCount) {
      return this.#end({ status: "sent", receipts }, "sent", from);
    }
    this.#dueAt = Math.floor(this.#parts.clock.wall());
    const { custody } = this.#parts;
    const kept = await custody.settle(this.#pursued.id, from, { state: "pending", receipts, dueAt: this.#dueAt });
    return kept ? WAIT : this.#leaveAsItIs();
  }

  /** Nothing of the part in question went out. */
  async #retry(failure: DeliveryFailure, from: DeliveryState): Promise<Step> {
    const { custody, clock, retry, random } = this.#parts;
    const doubt = doubtOf(failure);
    const permanent = doubt.kind === "known" && doubt.permanent;
    const outcome = failedWith(failure, this.#receipts);
    if (permanent || this.#attempts >= retry.maxAttempts) return this.#end(outcome, "failed", [from], failure.message);
    const retryAfterMs = doubt.kind === "known" ? doubt.retryAfterMs : 0;
    this.#dueAt = Math.floor(clock.wall()) + backOff(Math.max(1, this.#attempts), retryAfterMs, retry, random);
    const kept = await custody.settle(this.#pursued.id, [from], {
      state: "pending",
      receipts: this.#receipts,
      error: failure.message,
      dueAt: this.#dueAt,
    });
    if (!kept) return this.#leaveAsItIs(failure);
    this.#report(outcome, "pending");
    return WAIT;
  }

  #drop(from: readonly DeliveryState[]): Promise<Step> {
    const failure = abortOf(this.#pursued.delivery.signal);
    return this.#end(failedWith(failure, this.#receipts), "dropped", from, failure.message);
  }

  /** The outcome is handed out at once; others are told once it is written down, so that whoever dies in between tells nobody twice. */
  async #end(
    outcome: Ended,
    state: "sent" | "failed" | "dropped",
    from: readonly DeliveryState[],
    error?: string,
  ): Promise<Step> {
    this.#report(outcome, state);
    this.#place.leave();
    const receipts = this.#receipts;
    await this.#parts.custody.settle(this.#pursued.id, from, {
      state,
      receipts,
      ...(error === undefined ? {} : { error }),
    });
    tellSent(outcome, this.#content, this.#pursued.delivery);
    return OVER;
  }

  /** Its state is not what this process has left it in, or could not be written. Rejects as the store. */
  async #leaveAsItIs(failure: DeliveryFailure = taken()): Promise<Step> {
    const state = (await this.#parts.custody.read(this.#pursued.id))?.state ?? "dropped";
    return this.#leave(failure, state === "attempting" ? "unknown" : state);
  }

  #leave(failure: DeliveryFailure, state: CustodyRef["state"]): Step {
    this.#report(failedWith(failure, this.#receipts), state);
    return OVER;
  }

  #report(outcome: Ended, state: CustodyRef["state"]): void {
    this.#parts.report(outcome, state);
  }
}

function firstStep(state: "pending" | "attempting" | "unknown"): Step {
  switch (state) {
    case "pending":
      return WAIT;
    case "attempting":
      return ATTEMPT;
    case "unknown":
      return {
        to: "clear-up",
        failure: { at: "send", message: "the attempt has no recorded end", cause: undefined },
      };
  }
}

function refusedLate(thrown: unknown): Step {
  const failure = sendFailure(thrown);
  return doubtOf(failure).kind === "known" ? { to: "retry", from: "unknown", failure } : { to: "clear-up", failure };
}

function failedWith(failure: DeliveryFailure, receipts: readonly SendReceipt[]): Failed | PartiallyFailed {
  return receipts.length === 0 ? { status: "failed", failure } : { status: "partial_failed", receipts, failure };
}

function behind(): DeliveryFailure {
  return notYet("it waits behind a delivery that is to be tried again");
}

function closed(): DeliveryFailure {
  return notYet("the queue goes on with it at its next start");
}

function taken(): DeliveryFailure {
  return notYet("somebody else has decided what becomes of it");
}

function notYet(message: string): DeliveryFailure {
  return { at: "before-send", message, cause: undefined };
}

function byOf(by: string | undefined): string {
  return by === undefined ? "" : ` (${by})`;
}
