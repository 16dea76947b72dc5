import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openMemoryStore } from "#src/store/memory.js";
import { type Fault, FaultyStore } from "../support/faulty-store.js";
import { ack, allow, broken, delayed, deny, keep, never, type Part, Rig } from "../support/kernels.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

type Sketch = {
  readonly mode: Part["mode"];
  readonly conduct: "well" | "fail" | "hang";
  readonly afterMs: number;
  readonly writeAhead: boolean;
};

const sketches: fc.Arbitrary<Sketch> = fc.record({
  mode: fc.constantFrom("observe" as const, "observe" as const, "transform" as const, "veto" as const),
  conduct: fc.constantFrom("well" as const, "well" as const, "well" as const, "fail" as const, "hang" as const),
  afterMs: fc.nat({ max: 6 }),
  writeAhead: fc.boolean(),
});

const faults: fc.Arbitrary<Fault | null> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(null) },
  ...(["lose the reply", "lose the request", "throw", "hang", "acknowledge late"] as const).map((does) => ({
    weight: 1,
    arbitrary: fc.constant({ does }),
  })),
  { weight: 1, arbitrary: fc.constant({ does: "refuse", code: "HL_STORE_UNAVAILABLE" } as const) },
  { weight: 1, arbitrary: fc.constant({ does: "refuse", code: "HL_STORE_CONFLICT" } as const) },
);

const plots = fc.noBias(
  fc.record({
    chain: fc.array(sketches, { maxLength: 5 }),
    /** What becomes of each append, mending included; later ones succeed. */
    faults: fc.array(faults, { maxLength: 6 }),
    observe: fc.constantFrom("concurrent" as const, "sequential" as const, "detached" as const),
    vetoBearing: fc.boolean(),
    onStoreFailure: fc.constantFrom("abort" as const, "continue" as const),
    cancelAtMs: fc.option(fc.nat({ max: 12 }), { freq: 4 }),
    id: fc.option(fc.constant("01ARZ3NDEKTSV4RRFFQ69G5FAV")),
  }),
);

function partOf(clock: VirtualClock, { mode, conduct, afterMs, writeAhead }: Sketch): Part {
  const well = mode === "observe" ? ack : mode === "transform" ? keep : afterMs === 6 ? deny : allow;
  const answer = conduct === "fail" ? broken : well;
  return {
    mode,
    timeoutMs: 5,
    recording: writeAhead ? "write-ahead" : "barrier",
    does: conduct === "hang" ? never : delayed(clock, afterMs, answer),
  };
}

describe("whatever fails in a store", () => {
  it("should leave nobody waiting, no allow that the ledger does not hold, and a log that verifies", async () => {
    await fc.assert(
      fc.asyncProperty(plots, async (plot) => {
        const clock = new VirtualClock();
        const store = new FaultyStore(openMemoryStore(), (nth) => plot.faults[nth - 1] ?? null);
        const rig = new Rig({
          store,
          clock,
          point: plot.vetoBearing ? "pre-tool-call" : "pre-model-call",
          settings: { observeConcurrency: plot.observe, onStoreFailure: plot.onStoreFailure },
          chain: plot.chain
            .filter(({ mode }) => plot.vetoBearing || mode !== "veto")
            .map((part) => partOf(clock, part)),
        });
        const caller = new AbortController();
        if (plot.cancelAtMs !== null) clock.first(plot.cancelAtMs, () => caller.abort());
        const pending = rig.begin({ signal: caller.signal, ...(plot.id === null ? {} : { id: plot.id }) });
        const ended = Promise.allSettled([pending, rig.dispatcher.idle()]);
        let over = false;
        void ended.then(() => {
          over = true;
        });
        // A store that was silent speaks in the end, and time passes meanwhile.
        for (let round = 0; !over; round++) {
          if (round > 50) throw new Error("somebody waits for ever");
          await clock.run();
          store.release();
          await settled();
        }
        const [result] = await ended;
        if (result.status === "rejected") {
          expect(result.reason.code).toMatch(/^HL_(STORE|DISPATCH)_/);
          expect(plot.id).not.toBeNull();
          return;
        }
        const { value } = result;
        if (plot.vetoBearing && !value.recorded) expect(value.allowed).toBe(false);
        if (!value.recorded) expect(rig.lines.length).toBeGreaterThan(0);
        if (!value.recorded && value.allowed) expect(plot.onStoreFailure).toBe("continue");
        if (!(await rig.isRecorded(value.dispatchId))) {
          expect(value.recorded).toBe(false);
          return;
        }
        const { verdict, diverged } = await rig.recorded(value.dispatchId);
        expect(diverged).toBeNull();
        if (value.recorded) {
          const { status, decision, decidedBy, allowed, abortCause } = value;
          expect(verdict).toMatchObject({ status, decision, decidedBy, allowed, abortCause });
          expect(verdict.payload).toBe(value.payload?.ref.digest ?? null);
        }
      }),
      { numRuns: 1_500 },
    );
  }, 60_000);
});
