/** Who has the input of one turn, and the handles on it that takeovers are given. */

import { HookledgerError } from "../../errors.js";
import { thrownText } from "../../subscribers/fault.js";
import { type Ingress, notAdopted, type TurnAdoption } from "./adoption.js";

/** One a turn. An adoption that fails cuts its dispatch off, whatever handlers make of the error. */
export class InputCustody {
  readonly #ingress: Ingress;
  readonly #turn: AbortSignal | undefined;
  readonly #cut = new AbortController();
  #adoption: Promise<void> | undefined;
  #pending: { readonly call: CallAdoption; readonly reject: (error: HookledgerError) => void } | null = null;
  #adopted = false;
  #failure: HookledgerError | null = null;
  #givenBack = false;

  /** `turn`: of the turn. */
  constructor(ingress: Ingress, turn: AbortSignal | undefined) {
    this.#ingress = ingress;
    this.#turn = turn;
  }

  /** For the dispatch: aborted with the turn, by a failed adoption, and, until the input is adopted, by its ingress. */
  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  get adopted(): boolean {
    return this.#adopted;
  }

  /** Why the input was not handed over; null as long as nothing went wrong with that. */
  get failure(): HookledgerError | null {
    return this.#failure;
  }

  /** A dispatch begins: a handle that is good until `end`. */
  begin(): CallAdoption {
    const { signal: claim, watchdog } = this.#ingress;
    const watched = [this.#turn, claim, watchdog?.signal].filter((signal) => signal !== undefined);
    const look = (): void => this.#look();
    for (const signal of watched) signal.addEventListener("abort", look);
    look();
    return new CallAdoption(this, null, () => {
      for (const signal of watched) signal.removeEventListener("abort", look);
    });
  }

  /** A run was begun, or the input taken: it is not stalled. */
  begun(): void {
    this.#ingress.watchdog?.stop();
  }

  giveBack(): void {
    if (this.#givenBack) return;
    this.#givenBack = true;
    this.#ingress.giveBack?.();
  }

  /** For a handle: the one adoption. */
  adopt(call: CallAdoption): Promise<void> {
    this.#adoption ??= this.#handOver(call);
    return this.#adoption;
  }

  /** For a handle: whoever is answered after the end of its own call is not adopting any more. */
  callOver(): void {
    const why = this.#pending === null ? null : this.#whyNot(this.#pending.call);
    if (why !== null) this.#fail(why);
  }

  #handOver(call: CallAdoption): Promise<void> {
    const adoption = new Promise<void>((resolve, reject) => {
      this.#pending = { call, reject };
      if (this.#refused(call)) return;
      acknowledgementOf(this.#ingress).then(
        () => {
          // An abort, or the end of the call, meanwhile: it has failed.
          if (this.#pending === null) return;
          this.#pending = null;
          this.#adopted = true;
          this.begun();
          resolve();
        },
        (thrown: unknown) => {
          if (this.#pending !== null)
            this.#fail(notAdopted(`the host did not acknowledge it: ${thrownText(thrown)}`, thrown));
        },
      );
    });
    // Who does not wait for it learns of it by the end of the dispatch.
    adoption.catch(() => {});
    return adoption;
  }

  #refused(call: CallAdoption): boolean {
    const why = this.#failure ?? this.#whyNot(call);
    if (why !== null) this.#fail(why);
    return why !== null;
  }

  #whyNot(call: CallAdoption): HookledgerError | null {
    if (this.#turn?.aborted) return notAdopted("the turn was aborted", this.#turn.reason);
    const { signal: claim } = this.#ingress;
    if (claim?.aborted) return notAdopted("the host's claim on it was aborted", claim.reason);
    return call.isOver ? notAdopted("the hook call is over") : null;
  }

  #look(): void {
    const { signal: claim, watchdog } = this.#ingress;
    if (this.#pending !== null && (this.#turn?.aborted || claim?.aborted)) this.callOver();
    if (this.#turn?.aborted) this.#cut.abort(this.#turn.reason);
    if (this.#adopted || this.#failure !== null) return;
    if (claim?.aborted) this.#cut.abort(claim.reason);
    if (watchdog?.signal.aborted) this.#fail(stalled(watchdog.signal.reason));
  }

  #fail(error: HookledgerError): void {
    this.#failure ??= error;
    this.#pending?.reject(this.#failure);
    this.#pending = null;
    this.#cut.abort(this.#failure);
  }
}

/** Of one dispatch, or of one handler's call within it. */
export class CallAdoption implements TurnAdoption {
  readonly #custody: InputCustody;
  readonly #dispatch: CallAdoption | null;
  readonly #onEnd: () => void;
  #over = false;
  /** What it was told stands, whatever others are told. */
  #adoption: Promise<void> | undefined;

  constructor(custody: InputCustody, dispatch: CallAdoption | null, onEnd: () => void = () => {}) {
    this.#custody = custody;
    this.#dispatch = dispatch;
    this.#onEnd = onEnd;
  }

  get isOver(): boolean {
    return this.#over || (this.#dispatch?.isOver ?? false);
  }

  adopt(): Promise<void> {
    this.#adoption ??= this.isOver && this.#custody.failure === null ? refused() : this.#custody.adopt(this);
    return this.#adoption;
  }

  assertCurrent(): void {
    const { failure, signal } = this.#custody;
    if (failure !== null) throw failure;
    if (this.isOver || signal.aborted) {
      throw new HookledgerError("HL_TURN_OVER", "the hook call that this belonged to is over", {
        cause: signal.reason,
      });
    }
  }

  /** For one handler's call of this dispatch. */
  ofCall(): CallAdoption {
    return new CallAdoption(this.#custody, this);
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#custody.callOver();
    this.#onEnd();
  }
}

function refused(): Promise<void> {
  const refusal = Promise.reject<void>(notAdopted("the hook call is over"));
  refusal.catch(() => {});
  return refusal;
}

async function acknowledgementOf(ingress: Ingress): Promise<void> {
  await ingress.acknowledge();
}

function stalled(reason: unknown): HookledgerError {
  return reason instanceof HookledgerError ? reason : notAdopted("nobody began on it in time", reason);
}
