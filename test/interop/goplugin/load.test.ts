import { describe, expect, it } from "vitest";
import type { DispatchResult } from "#src/dispatch/result.js";
import { replayStream } from "#src/replay/replay.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { kernelOn, projectWith } from "./kernels.js";
import { carrying, mark, running } from "./lives.js";

/** How much must have happened. */
const ALLOWED = 500;
const KILLED = 30;
/** ms, if it does not */
const LONGEST = 30_000;
const RESTART = { firstWaitMs: 1, longestWaitMs: 5, bound: 10_000, goodRunMs: 60_000 };

describe("64 dispatches at a time, cancelled and bereft of their plugin at random", () => {
  it("should allow nothing that the plugin did not, and keep every decision", async () => {
    const marked = mark();
    const { kernel, store } = await kernelOn(projectWith({ args: [marked] }), { restart: RESTART });
    await kernel.start();
    const results: { readonly order: string; readonly result: DispatchResult }[] = [];
    let [asked, allowed, killed] = [0, 0, 0];
    const until = performance.now() + LONGEST;

    const dispatch = async () => {
      asked += 1;
      const order = asked % 100 === 0 ? "panic" : asked % 2 === 0 ? "read_file" : "deny no";
      const cancel = new AbortController();
      const timer = Math.random() < 0.2 ? setTimeout(() => cancel.abort(), Math.random() * 5) : undefined;
      const result = await kernel.dispatch(carrying("veto", order), { signal: cancel.signal });
      clearTimeout(timer);
      results.push({ order, result });
      if (result.allowed) allowed += 1;
      // Where the plugin is down nothing waits: let others have a turn.
      else if (result.hookErrors.length > 0) await new Promise(setImmediate);
    };
    const dispatchOn = async () => {
      while ((allowed < ALLOWED || killed < KILLED) && performance.now() < until) await dispatch();
    };
    const killer = setInterval(() => {
      const pids = running(marked);
      if (kill(pids[Math.floor(Math.random() * pids.length)])) killed += 1;
    }, 100);
    await Promise.all(Array.from({ length: 64 }, dispatchOn));
    clearInterval(killer);
    await kernel.close();

    expect(allowed).toBeGreaterThanOrEqual(ALLOWED);
    expect(killed).toBeGreaterThanOrEqual(KILLED);
    for (const { order, result } of results) {
      if (result.allowed) expect({ order, errors: result.hookErrors }).toEqual({ order: "read_file", errors: [] });
      const stream = await store.readStream(`hookdispatch-${result.dispatchId}`);
      const replayed = stream === null ? undefined : replayStream(stream);
      expect(replayed).toMatchObject({ verdict: { allowed: result.allowed, decidedBy: result.decidedBy } });
    }
    for await (const { diverged } of verifyAll(store, undefined, 1)) expect(diverged).toEqual([]);
    await expect.poll(() => running(marked)).toEqual([]);
  }, 60_000);
});

function kill(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}
