/** One check of one subscriber at one point: over generated specimens, or over one that is given. */

import fc from "fast-check";
import type { Payload } from "../payload/payload.js";
import { recovered } from "./bench.js";
import type { Bench, Check } from "./check.js";

export type Specimen =
  | { readonly kind: "payload"; readonly payload: Payload }
  | { readonly kind: "request"; readonly bytes: Uint8Array };

export type Finding =
  | { readonly ok: true; readonly runs: number }
  /** `specimen`: the smallest with which it failed; undefined where nothing was tried. */
  | { readonly ok: false; readonly runs: number; readonly message: string; readonly specimen: Specimen | undefined };

export type Effort = {
  readonly runs: number;
  /** ms; one run is made in any case. */
  readonly limitMs: number;
  /** It answers ordinary payloads: where it does not after a failure, that is waited for. */
  readonly recovers: boolean;
  readonly onRun: () => void;
};

export function explore(check: Check, bench: Bench, effort: Effort): Promise<Finding> {
  switch (check.takes) {
    case "payload": {
      const trial = new Trial(bench, effort, check.judge, asPayload);
      return trial.explore(check.arbitrary(bench), Math.max(1, Math.round(effort.runs * check.share)));
    }
    case "request": {
      const trial = new Trial(bench, effort, check.judge, asRequest);
      return trial.explore(check.arbitrary(bench), Math.max(1, Math.round(effort.runs * check.share)));
    }
  }
}

/** Tries the one specimen up to `runs` times, for what fails only now and then. Throws TypeError where the check takes another kind. */
export function retry(check: Check, bench: Bench, specimen: Specimen, effort: Effort): Promise<Finding> {
  if (check.takes === "payload" && specimen.kind === "payload") {
    return new Trial(bench, effort, check.judge, asPayload).retry(specimen.payload);
  }
  if (check.takes === "request" && specimen.kind === "request") {
    return new Trial(bench, effort, check.judge, asRequest).retry(specimen.bytes);
  }
  throw new TypeError(`${check.name} takes no ${specimen.kind}`);
}

function asPayload(payload: Payload): Specimen {
  return { kind: "payload", payload };
}

function asRequest(bytes: Uint8Array): Specimen {
  return { kind: "request", bytes };
}

/** How often the smallest is tried again, to tell what fails always from what fails now and then. */
const CONFIRMATIONS = 3;

class Trial<T> {
  readonly #bench: Bench;
  readonly #effort: Effort;
  readonly #judge: (bench: Bench, specimen: T) => Promise<string | null>;
  readonly #specimen: (value: T) => Specimen;
  readonly #end: number;
  #runs = 0;
  #smallest: { readonly value: T; readonly message: string } | undefined;

  constructor(
    bench: Bench,
    effort: Effort,
    judge: (bench: Bench, specimen: T) => Promise<string | null>,
    specimen: (value: T) => Specimen,
  ) {
    this.#bench = bench;
    this.#effort = effort;
    this.#judge = judge;
    this.#specimen = specimen;
    this.#end = performance.now() + effort.limitMs;
  }

  async explore(arbitrary: fc.Arbitrary<T>, numRuns: number): Promise<Finding> {
    let isGone = false;
    const property = fc.asyncProperty(arbitrary, async (value) => {
      // From here on nothing is tried any more, and what was found stands.
      if (isGone || (this.#runs > 0 && this.#isOver())) return;
      if (await this.#passes(value)) return;
      isGone = this.#effort.recovers && !(await recovered(this.#bench));
      throw new Error(this.#smallest?.message);
    });
    const { failed, errorInstance } = await fc.check(property, { seed: this.#bench.seed, numRuns });
    const smallest = this.#smallest;
    // Nothing of the subscriber's: the check itself broke.
    if (failed && smallest === undefined) throw errorInstance;
    if (smallest === undefined) return { ok: true, runs: this.#runs };
    if (isGone) return this.#failed(`${smallest.message}; it has not answered since`, smallest.value);
    const isSteady = await this.#failsAgain(smallest.value);
    return this.#failed(smallest.message + (isSteady ? "" : "; not every time"), smallest.value);
  }

  async retry(value: T): Promise<Finding> {
    for (let run = 0; run < this.#effort.runs && (run === 0 || !this.#isOver()); run++) {
      if (!(await this.#passes(value))) break;
    }
    const smallest = this.#smallest;
    return smallest === undefined ? { ok: true, runs: this.#runs } : this.#failed(smallest.message, value);
  }

  async #passes(value: T): Promise<boolean> {
    if (this.#smallest === undefined) this.#runs++;
    this.#effort.onRun();
    const message = await this.#judge(this.#bench, value);
    if (message === null) return true;
    this.#smallest = { value, message };
    return false;
  }

  async #failsAgain(value: T): Promise<boolean> {
    for (let time = 0; time < CONFIRMATIONS && !this.#isOver(); time++) {
      if ((await this.#judge(this.#bench, value)) === null) return false;
      if (this.#effort.recovers && !(await recovered(this.#bench))) return true;
    }
    return true;
  }

  #failed(message: string, value: T): Finding {
    return { ok: false, runs: this.#runs, message, specimen: this.#specimen(value) };
  }

  #isOver(): boolean {
    return performance.now() >= this.#end;
  }
}
