import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TranscriptWriter } from "#src/messages/turn/transcript.js";
import { UserTurnRecorder } from "#src/messages/turn/user-turn.js";
import { settled } from "../../support/virtual-clock.js";
import { gate } from "../inbound/gateway.js";
import { MESSAGE, RECEIPT, TARGET } from "./transcripts.js";

function recorder(append: TranscriptWriter["append"]) {
  return new UserTurnRecorder({ transcripts: { append }, target: TARGET, message: MESSAGE, idempotencyKey: "u-1" });
}

describe("userTurnTranscriptRecorder", () => {
  it("should append the user's turn once, whoever calls: the runtime and the gateway share it", async () => {
    const appended: unknown[] = [];
    const shared = recorder(async (...args) => {
      appended.push(args);
      return RECEIPT;
    });
    const receipts = await Promise.all([shared.persist(), shared.persist()]);
    expect([...receipts, await shared.persist()]).toEqual([RECEIPT, RECEIPT, RECEIPT]);
    expect(appended).toEqual([[TARGET, MESSAGE, "u-1"]]);
  });

  it("should be marked persisted only after a successful write", async () => {
    const { opened, open } = gate();
    const shared = recorder(() => opened.then(() => RECEIPT));
    const writing = shared.persist();
    await settled();
    expect(shared.persisted).toBe(false);
    open();
    await writing;
    expect(shared.persisted).toBe(true);
  });

  it("should let a failed write be tried again, whoever tries", async () => {
    let attempts = 0;
    const shared = recorder(async () => {
      if (++attempts < 3) throw new Error("the disk is full");
      return RECEIPT;
    });
    const [first, beside] = await Promise.allSettled([shared.persist(), shared.persist()]);
    expect([first?.status, beside?.status, attempts, shared.persisted]).toEqual(["rejected", "rejected", 1, false]);
    await expect(shared.persist()).rejects.toThrow("the disk is full");
    expect(await shared.persist()).toBe(RECEIPT);
    expect([attempts, shared.persisted]).toEqual([3, true]);
  });

  it("should take a runtime's own write for it, and not append beside that", async () => {
    const shared = recorder(() => Promise.reject(new Error("must not be appended")));
    const { opened, open } = gate();
    const own = shared.persist(() => opened.then(() => RECEIPT));
    const gateways = shared.persist();
    open();
    expect([await own, await gateways]).toEqual([RECEIPT, RECEIPT]);
  });

  it("should append nothing once a runtime has marked its own write", async () => {
    const shared = recorder(() => Promise.reject(new Error("must not be appended")));
    shared.markPersisted();
    expect([shared.persisted, await shared.persist()]).toEqual([true, null]);
  });

  it("should write once under any schedule of callers and failures", async () => {
    const plans = fc.array(fc.record({ fails: fc.boolean(), throws: fc.boolean(), waits: fc.boolean() }), {
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(plans, async (callers) => {
        let written = 0;
        const shared = recorder(() => Promise.reject(new Error("the host's")));
        const ends: Promise<unknown>[] = [];
        for (const { fails, throws, waits } of callers) {
          const before = written;
          const end = shared.persist(() => {
            if (fails && throws) throw new Error("failed");
            if (fails) return Promise.reject(new Error("failed"));
            written++;
            return Promise.resolve(RECEIPT);
          });
          ends.push(end.catch(() => {}));
          if (waits) await end.catch(() => {});
          if (before === 1) expect(await end).toBe(RECEIPT);
        }
        await Promise.all(ends);
        expect(written).toBeLessThanOrEqual(1);
        expect(shared.persisted).toBe(written === 1);
      }),
      { numRuns: 1_000 },
    );
  });
});
