/** A ledger that is slower than what is dispatched: refused, counted, said, and never lost in silence. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { HookPoint } from "#src/core/points.js";
import { createKernel } from "#src/dispatch/kernel.js";
import { telemetry } from "#src/dispatch/telemetry.js";
import { openMemoryStore } from "#src/store/memory.js";
import { type Fault, FaultyStore, fromNth, onlyNth } from "../support/faulty-store.js";
import { ack, allow, Later, type Part, Rig, type StageOptions } from "../support/kernels.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import { Observatory } from "../support/tracing.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const FULL: Fault = { does: "refuse", code: "HL_STORE_BACKLOG" };
const GUARD: Part[] = [{ mode: "veto", does: allow }];

function overloaded(chain: readonly Part[], options: StageOptions = {}) {
  const observatory = new Observatory();
  const clock = new VirtualClock();
  const store = new FaultyStore(openMemoryStore(), fromNth(1, FULL));
  const parts = { telemetry: telemetry(observatory.tracer, observatory.meter) };
  return { observatory, clock, store, rig: new Rig({ ...options, store, clock, chain, parts }) };
}

async function counted(observatory: Observatory, name: string): Promise<number> {
  const points = (await observatory.metrics()).get(name)?.points ?? [];
  return points.reduce((sum, { value }) => sum + value, 0);
}

describe("a dispatch that the ledger has no room for", () => {
  it("should be aborted at a veto-bearing point, with the reason", async () => {
    const { rig, observatory } = overloaded(GUARD);
    expect(await rig.dispatch()).toMatchObject({
      status: "aborted",
      abortCause: "store_unavailable",
      allowed: false,
      recorded: false,
      storeError: "HL_STORE_BACKLOG",
      reason: expect.stringMatching(/^HL_STORE_BACKLOG: /),
    });
    expect(rig.lines).toMatchObject([{ level: "error", message: expect.stringContaining("HL_STORE_BACKLOG") }]);
    expect(await counted(observatory, "hookledger.store.failures")).toBe(1);
  });

  it.each(["abort", "continue"] as const)(
    "should do elsewhere what on_store_failure says: %s",
    async (onStoreFailure) => {
      const point: HookPoint = "session-end";
      const { rig } = overloaded([{ mode: "observe", does: ack }], { point, settings: { onStoreFailure } });
      const status = onStoreFailure === "abort" ? "aborted" : "decided";
      expect(await rig.dispatch()).toMatchObject({ status, recorded: false, storeError: "HL_STORE_BACKLOG" });
    },
  );

  it("should be counted with every append that was refused, but said once a second", async () => {
    const { rig, observatory, clock } = overloaded(GUARD);
    await Promise.all(Array.from({ length: 50 }, () => rig.begin()));
    expect(rig.lines).toHaveLength(1);
    clock.block(1000);
    await rig.begin();
    expect(rig.lines.map(({ message }) => message).at(-1)).toMatch(/and 49 more since the last such line/);
    await Promise.all([rig.begin(), rig.begin()]);
    expect(rig.lines).toHaveLength(2);
    await rig.dispatcher.idle();
    expect(rig.lines.at(-1)?.message).toBe("2 more since the last such line");
    expect(await counted(observatory, "hookledger.store.backlog_refusals")).toBe(53);
    expect(await counted(observatory, "hookledger.store.failures")).toBe(53);
  });

  it("should be counted and said for an outcome that comes after the decision", async () => {
    const outcome = new Later<typeof ack>();
    const { rig, store, observatory } = overloaded([{ mode: "observe", does: () => outcome.promise }], {
      settings: { observeConcurrency: "detached" },
    });
    store.plan = onlyNth(2, FULL);
    expect(await rig.begin()).toMatchObject({ status: "decided", recorded: true, storeError: null });
    outcome.resolve(ack);
    await settled();
    await rig.dispatcher.idle();
    expect(rig.lines).toMatchObject([
      { level: "error", message: expect.stringMatching(/came after the decision is not recorded: HL_STORE_BACKLOG/) },
    ]);
    expect(await counted(observatory, "hookledger.store.backlog_refusals")).toBe(1);
    expect(await counted(observatory, "hookledger.store.failures")).toBe(1);
  });
});

describe("a kernel on a real ledger", () => {
  it("should show what waits, and refuse, without loss, what is beyond the bound", async () => {
    const folder = temporaryFolder();
    const observatory = new Observatory();
    const kernel = await createKernel({
      config: await emptyConfig(folder.path),
      store: `sqlite:${join(folder.path, "ledger.db")}`,
      meter: observatory.meter,
    });
    const text = "x".repeat(20 * 1024 * 1024);
    const input = { preModelCall: { messages: [{ role: "ROLE_USER" as const, content: [{ text: { text } }] }] } };
    const dispatched = Array.from({ length: 8 }, () => kernel.dispatch(input));
    await settled();
    expect(await counted(observatory, "hookledger.store.pending_bytes")).toBeGreaterThan(20 * 1024 * 1024);
    const results = await Promise.all(dispatched);
    const refused = results.filter(({ storeError }) => storeError === "HL_STORE_BACKLOG");
    expect(refused.length).toBeGreaterThan(0);
    expect(results.length - refused.length).toBe(results.filter(({ recorded }) => recorded).length);
    expect(await counted(observatory, "hookledger.store.backlog_refusals")).toBeGreaterThanOrEqual(refused.length);
    expect(await counted(observatory, "hookledger.store.pending_bytes")).toBe(0);
    expect(await kernel.dispatch(input)).toMatchObject({ recorded: true });
    await kernel.close();
    folder.remove();
  });

  it("should look at the store no more once it is closed", async () => {
    const folder = temporaryFolder();
    const observatory = new Observatory();
    const store = new Watched(openMemoryStore());
    const kernel = await createKernel({ config: await emptyConfig(folder.path), store, meter: observatory.meter });
    await observatory.metrics();
    expect(store.looks).toBe(1);
    await kernel.close();
    await observatory.metrics();
    expect(store.looks).toBe(1);
    folder.remove();
  });
});

class Watched extends FaultyStore {
  looks = 0;
  override get pendingBytes(): number {
    this.looks++;
    return super.pendingBytes;
  }
}

async function emptyConfig(folder: string): Promise<string> {
  const file = join(folder, "agent.hcl");
  await writeFile(file, "settings {\n}\n");
  return file;
}
