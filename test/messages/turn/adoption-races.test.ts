import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { ReplyTurn } from "#src/messages/agent/reply-turn.js";
import { createMessageHooks } from "#src/messages/create.js";
import { definePlugin } from "#src/messages/plugin.js";
import { type CallAdoption, InputCustody } from "#src/messages/turn/custody.js";
import { StartupWatchdog } from "#src/messages/turn/watchdog.js";
import { VirtualClock } from "../../support/virtual-clock.js";
import { AGENT, EVENT } from "../agent/turn.js";
import { gate, NotingDispatcher } from "../inbound/gateway.js";

const CALLS = 3;

type Step =
  | { readonly kind: "adopt" | "end call" | "assertCurrent"; readonly call: number }
  | { readonly kind: "acknowledge"; readonly well: boolean }
  | { readonly kind: "abort turn" | "abort claim" | "watchdog fires" | "run starts" | "end dispatch" | "settle" };

const calls = fc.integer({ min: 0, max: CALLS - 1 });
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom("adopt", "assertCurrent"), call: calls }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("end call"), call: calls }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("acknowledge"), well: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("settle") }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("abort turn", "abort claim", "watchdog fires", "run starts", "end dispatch"),
    }),
  },
);

/** What is to become of one input, told without promises. */
class Model {
  state: "kept" | "handing over" | "adopted" | "failed" = "kept";
  acknowledgement: "none" | "asked" | "given" | "refused" | "over" = "none";
  adopter = -1;
  asked = 0;
  cut = false;
  turnAborted = false;
  claimAborted = false;
  watchdog: "runs" | "stopped" | "fired" = "runs";
  dispatchOver = false;
  readonly callOver: boolean[] = Array.from({ length: CALLS }, () => false);
  /** What each call was told: the shared adoption, or a refusal of its own. */
  readonly told: ("shared" | "refused" | undefined)[] = [];

  isOver(call: number): boolean {
    return this.dispatchOver || this.callOver[call] === true;
  }

  fail(): void {
    this.state = "failed";
    this.cut = true;
  }

  #interrupt(): void {
    if (this.state === "handing over") this.fail();
  }

  adopt(call: number): void {
    if (this.told[call] !== undefined) return;
    if (this.isOver(call) && this.state !== "failed") {
      this.told[call] = "refused";
      return;
    }
    this.told[call] = "shared";
    if (this.state !== "kept") return;
    if (this.turnAborted || this.claimAborted) {
      this.fail();
      return;
    }
    this.state = "handing over";
    this.acknowledgement = "asked";
    this.adopter = call;
    this.asked++;
  }

  isCurrent(call: number): boolean {
    return !this.cut && !this.isOver(call);
  }

  step(step: Exclude<Step, { readonly kind: "adopt" | "assertCurrent" }>): void {
    switch (step.kind) {
      case "end call":
        this.callOver[step.call] = true;
        if (this.adopter === step.call) this.#interrupt();
        return;
      case "acknowledge":
        if (this.acknowledgement === "asked") this.acknowledgement = step.well ? "given" : "refused";
        return;
      case "abort turn":
        this.turnAborted = true;
        this.#interrupt();
        if (!this.dispatchOver) this.cut = true;
        return;
      case "abort claim":
        this.claimAborted = true;
        this.#interrupt();
        if (!this.dispatchOver && this.state === "kept") this.cut = true;
        return;
      case "watchdog fires":
        if (this.watchdog !== "runs") return;
        this.watchdog = "fired";
        if (!this.dispatchOver && this.state !== "adopted") this.fail();
        return;
      case "run starts":
        if (this.watchdog === "runs") this.watchdog = "stopped";
        return;
      case "end dispatch":
        this.dispatchOver = true;
        this.#interrupt();
        return;
      case "settle":
        if (this.state !== "handing over") return;
        if (this.acknowledgement === "refused") this.fail();
        if (this.acknowledgement !== "given") return;
        this.state = "adopted";
        if (this.watchdog === "runs") this.watchdog = "stopped";
        return;
    }
  }
}

/** The real thing, step by step. */
class Real {
  readonly clock = new VirtualClock();
  readonly #watchdog = new StartupWatchdog({
    timeoutMs: 10,
    clock: { ...clockOf(this.clock), timer: (_, fire) => this.#arm(fire) },
  });
  readonly #turn = new AbortController();
  readonly #claim = new AbortController();
  readonly #acknowledgement: { resolve(): void; reject(error: Error): void; promise: Promise<void> };
  readonly custody: InputCustody;
  readonly #dispatch: CallAdoption;
  readonly #calls: readonly CallAdoption[];
  readonly promises: (Promise<void> | undefined)[] = [];
  asked = 0;
  #fire: () => void = () => {};

  constructor() {
    let resolve = (): void => {};
    let reject = (_: Error): void => {};
    const promise = new Promise<void>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    promise.catch(() => {});
    this.#acknowledgement = {
      resolve: () => this.asked > 0 && resolve(),
      reject: (error) => this.asked > 0 && reject(error),
      promise,
    };
    this.#watchdog.start();
    this.custody = new InputCustody(
      {
        acknowledge: () => {
          this.asked++;
          return promise;
        },
        signal: this.#claim.signal,
        watchdog: this.#watchdog,
      },
      this.#turn.signal,
    );
    this.#dispatch = this.custody.begin();
    this.#calls = Array.from({ length: CALLS }, () => this.#dispatch.ofCall());
  }

  adopt(call: number): void {
    const promise = this.#call(call).adopt();
    expect(promise).toBe(this.promises[call] ?? promise);
    this.promises[call] = promise;
  }

  isCurrent(call: number): boolean {
    try {
      this.#call(call).assertCurrent();
      return true;
    } catch (error) {
      expect(error).toBeInstanceOf(HookledgerError);
      return false;
    }
  }

  /** A promise only where promises are to settle: whatever else happens, happens at once. */
  step(step: Exclude<Step, { readonly kind: "adopt" | "assertCurrent" }>): void | Promise<void> {
    switch (step.kind) {
      case "end call":
        return this.#call(step.call).end();
      case "acknowledge":
        if (step.well) this.#acknowledgement.resolve();
        else this.#acknowledgement.reject(new Error("refused"));
        return;
      case "abort turn":
        return this.#turn.abort();
      case "abort claim":
        return this.#claim.abort();
      case "watchdog fires":
        return this.#fire();
      case "run starts":
        return this.custody.begun();
      case "end dispatch":
        return this.#dispatch.end();
      case "settle":
        return new Promise((resolve) => setImmediate(resolve));
    }
  }

  #call(call: number): CallAdoption {
    const found = this.#calls[call];
    if (found === undefined) throw new Error(`no call ${call}`);
    return found;
  }

  #arm(fire: () => void): () => void {
    this.#fire = fire;
    return () => {
      this.#fire = () => {};
    };
  }
}

const clockOf = (clock: VirtualClock) => ({
  now: () => clock.now(),
  wall: () => clock.wall(),
  defer: (run: () => void) => clock.defer(run),
});

describe("adoption under any schedule of adopts, acknowledgements, aborts and ends", () => {
  it("should come to what a model without promises says", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 14 }), async (schedule) => {
        const model = new Model();
        const real = new Real();
        for (const step of [...schedule, { kind: "settle" } as const]) {
          if (step.kind === "adopt") {
            model.adopt(step.call);
            real.adopt(step.call);
          } else if (step.kind === "assertCurrent") {
            expect(real.isCurrent(step.call)).toBe(model.isCurrent(step.call));
          } else {
            model.step(step);
            const settling = real.step(step);
            if (settling !== undefined) await settling;
          }
        }
        expect(real.asked).toBe(model.asked);
        expect(real.asked).toBeLessThanOrEqual(1);
        expect(real.custody.failure !== null).toBe(model.state === "failed");
        const shared = new Set(real.promises.filter((_, call) => model.told[call] === "shared"));
        expect(shared.size).toBeLessThanOrEqual(1);
        for (const [call, promise] of real.promises.entries()) {
          if (promise === undefined) continue;
          const end = model.told[call] === "refused" ? "refused" : model.state;
          expect(await endOf(promise)).toEqual(END[end]);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});

const END = {
  refused: "HL_ADOPTION",
  failed: expect.stringMatching(/^HL_(ADOPTION|TURN_STALLED)$/),
  adopted: "adopted",
  "handing over": "pending",
  kept: "none",
};

async function endOf(promise: Promise<void>): Promise<string> {
  const pending = new Promise<string>((resolve) => setImmediate(() => resolve("pending")));
  const end = promise.then(
    () => "adopted",
    (error: unknown) => (error instanceof HookledgerError ? error.code : String(error)),
  );
  return Promise.race([end, pending]);
}

type Plan = {
  readonly adopts: number;
  readonly awaits: boolean;
  readonly swallows: boolean;
  readonly returns: "handled" | "nothing" | "throws";
  readonly acknowledges: "at once" | "later" | "never" | "refuses";
  readonly aborts: "nobody" | "turn" | "claim";
  readonly abortedAt: "before adoption" | "during adoption" | "after adoption";
  readonly usesLater: boolean;
};

const plans: fc.Arbitrary<Plan> = fc.record({
  adopts: fc.integer({ min: 0, max: 3 }),
  awaits: fc.boolean(),
  swallows: fc.boolean(),
  returns: fc.constantFrom("handled", "nothing", "throws"),
  acknowledges: fc.constantFrom("at once", "later", "refuses"),
  aborts: fc.constantFrom("nobody", "turn", "claim"),
  abortedAt: fc.constantFrom("before adoption", "during adoption", "after adoption"),
  usesLater: fc.boolean(),
});

describe("a dispatch under any takeover", () => {
  it("should either have its input adopted or leave it retryable, and never try the next handler after a failed adoption", async () => {
    let plan: Plan | undefined;
    let ran: Promise<unknown> = Promise.resolve();
    let nextAsked = false;
    let ends: { adopted: boolean; late: unknown } = { adopted: false, late: undefined };
    let abort: (at: Plan["abortedAt"]) => void = () => {};
    const first = definePlugin({
      id: "first",
      register: (api) =>
        api.on("reply_dispatch", (_, { turnAdoption }) => {
          if (plan === undefined || turnAdoption === undefined) throw new Error("no plan");
          const { adopts, awaits, swallows, returns, usesLater } = plan;
          const handled = async () => {
            abort("before adoption");
            const adoptions = Promise.all(Array.from({ length: adopts }, () => turnAdoption.adopt())).then(() => {
              if (adopts > 0) ends.adopted = true;
            });
            adoptions.catch(() => {});
            if (adopts > 0) abort("during adoption");
            if (awaits && swallows) await adoptions.catch(() => {});
            else if (awaits) await adoptions;
            abort("after adoption");
            if (returns === "throws") throw new Error("the takeover failed");
            return returns === "handled"
              ? { handled: true, queuedFinal: false, counts: { tool: 0, block: 0, final: 0 } }
              : null;
          };
          const running = handled();
          ran = running
            .catch(() => {})
            .then(async () => {
              await new Promise((resolve) => setImmediate(resolve));
              if (usesLater)
                ends.late = await turnAdoption.adopt().then(
                  () => "adopted",
                  (error: unknown) => error,
                );
              expect(() => turnAdoption.assertCurrent()).toThrow(HookledgerError);
            });
          return running;
        }),
    });
    const second = definePlugin({
      id: "second",
      register: (api) =>
        api.on("reply_dispatch", () => {
          nextAsked = true;
          return null;
        }),
    });
    const hooks = await createMessageHooks({ store: "memory:", plugins: [first, second] });
    const oneTurn = async (now: Plan) => {
      plan = now;
      nextAsked = false;
      ends = { adopted: false, late: undefined };
      const turn = new AbortController();
      const claim = new AbortController();
      const told: string[] = [];
      const { opened, open } = gate();
      abort = (at) => {
        if (at !== now.abortedAt) return;
        if (now.aborts === "turn") turn.abort(new Error("aborted"));
        if (now.aborts === "claim") claim.abort(new Error("lost"));
      };
      const acknowledge = async (): Promise<void> => {
        told.push("asked");
        if (now.acknowledges === "later") setImmediate(open);
        else open();
        await opened;
        if (now.acknowledges === "refuses") throw new Error("refused");
      };
      const replies = new ReplyTurn({
        runs: hooks.runs,
        target: AGENT,
        event: EVENT,
        context: { cfg: {}, dispatcher: new NotingDispatcher(), recordProcessed() {}, markIdle() {} },
        signal: turn.signal,
        ingress: { acknowledge, signal: claim.signal, giveBack: () => void told.push("given back") },
      });
      const end = await replies.takeover().then(
        (taken) => taken.end,
        (error: unknown) => (error instanceof HookledgerError ? error.code : String(error)),
      );
      await ran;
      return { end, told };
    };
    try {
      await fc.assert(
        fc.asyncProperty(plans, async (now) => {
          const { end, told } = await oneTurn(now);
          expect(told.filter((said) => said === "asked").length).toBeLessThanOrEqual(1);
          expect(told.includes("given back")).toBe(end === "HL_ADOPTION");
          if (end === "HL_ADOPTION") {
            expect(nextAsked).toBe(false);
            expect(ends.adopted).toBe(false);
          } else {
            expect(["handled", "declined", "aborted", "failed"]).toContain(end);
            if (end === "failed") expect([now.returns, ends.adopted]).toEqual(["throws", true]);
          }
          const willFail =
            now.adopts > 0 &&
            (now.acknowledges === "refuses" || (now.aborts !== "nobody" && now.abortedAt === "during adoption"));
          const cutBefore = now.aborts !== "nobody" && now.abortedAt === "before adoption";
          if (willFail && !cutBefore) expect(end).toBe("HL_ADOPTION");
          if (cutBefore) expect([end, told]).toEqual(["aborted", []]);
          if (end === "handled" && now.adopts > 0) expect(ends.adopted).toBe(true);
        }),
        { numRuns: 1_000 },
      );
    } finally {
      await hooks.close();
    }
  });
});
