/** Many dispatches at once through plugins that are killed, cancelled and misused at random. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { createKernel } from "#src/dispatch/kernel.js";
import type { DispatchResult } from "#src/dispatch/result.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openStore } from "#src/store/open.js";
import type { EventStore } from "#src/store/port.js";
import type { RestartPolicy } from "#src/subscribers/plugin/restart.js";
import { recordedIn } from "./kernels.js";
import { INPUTS } from "./subscriber-calls.js";

export type LoadOptions = {
  /** agent.hcl with a transform `rewrite` at pre-model-call, and the vetoes `gate` and then `second` at pre-tool-call. */
  readonly config: string;
  readonly url: string;
  readonly seed: number;
  /** In all, and at once. */
  readonly dispatches: number;
  readonly atOnce: number;
  /** Text that only the plugins' own processes have in their command line. */
  readonly mark: string;
  /** What a plugin may be asked for in the turn, with what a veto comes to if it gets as far as the plugin. */
  readonly turns: readonly { readonly turn: string; readonly denies: boolean }[];
};

export type LoadOutcome = {
  readonly allowed: number;
  readonly denied: number;
  readonly aborted: number;
  readonly killed: number;
  readonly crashedAnswers: number;
};

/** So that they are started again as long as the load lasts. */
const RESTLESS: RestartPolicy = {
  firstWaitMs: 5,
  longestWaitMs: 50,
  bound: Number.POSITIVE_INFINITY,
  goodRunMs: 10_000,
};

/** Every statement that must hold is expected in here. */
export async function loadWithKills(options: LoadOptions): Promise<LoadOutcome> {
  const store = await openStore(options.url, { mode: "write" });
  const kernel = await createKernel({ config: options.config, store, restart: RESTLESS });
  const random = randomFrom(options.seed);
  const results: { readonly result: DispatchResult; readonly denies: boolean }[] = [];
  let left = options.dispatches;
  let over = false;
  let killed = 0;
  const killer = (async () => {
    while (!over) {
      await pause(20 + random() * 60);
      const [pid] = pidsOf(options.mark).filter(() => random() < 0.5);
      if (pid !== undefined && kill(pid)) killed++;
    }
  })();
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left--;
      const point = random() < 0.25 ? "pre-model-call" : "pre-tool-call";
      const { turn, denies } = options.turns[Math.floor(random() * options.turns.length)]!;
      const abort = new AbortController();
      if (random() < 0.2) setTimeout(() => abort.abort(), random() * 20);
      const result = await kernel.dispatch(INPUTS[point], { turn, session: "load", signal: abort.signal });
      results.push({ result, denies: denies && point === "pre-tool-call" });
    }
  };
  await Promise.all(Array.from({ length: options.atOnce }, caller));
  over = true;
  await killer;
  await kernel.close();
  await expectAllRecorded(store, results);
  await store.close();
  expect(pidsOf(options.mark)).toEqual([]);
  const status = (wanted: (result: DispatchResult) => boolean) => results.filter(({ result }) => wanted(result)).length;
  return {
    allowed: status(({ allowed }) => allowed),
    denied: status((result) => result.status === "decided" && result.decision === "deny"),
    aborted: status((result) => result.status === "aborted"),
    killed,
    crashedAnswers: status(({ hookErrors }) => hookErrors.some(({ category }) => category === "PROCESS_CRASHED")),
  };
}

async function expectAllRecorded(
  store: EventStore,
  results: readonly { readonly result: DispatchResult; readonly denies: boolean }[],
): Promise<void> {
  for (const { result, denies } of results) {
    const { verdict, diverged } = await recordedIn(store, result.dispatchId);
    expect(diverged).toBeNull();
    expect(verdict).toMatchObject({ status: result.status, allowed: result.allowed, reason: result.reason });
    if (denies || result.hookErrors.some(({ mode }) => mode === "veto")) expect(result.allowed).toBe(false);
  }
  let checked = 0;
  for await (const part of verifyAll(store, undefined, 1)) {
    checked += part.checked;
    expect(part).toMatchObject({ open: 0, diverged: [] });
  }
  expect(checked).toBe(results.length);
}

/** Processes that are not a shell and whose command line holds the mark. */
export function pidsOf(mark: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    try {
      const [program = "", ...args] = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      return args.concat(program).some((arg) => arg.includes(mark)) && !/(?:^|\/)(?:sh|dash|bash)$/.test(program)
        ? [Number(name)]
        : [];
    } catch {
      return [];
    }
  });
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    return false;
  }
}

/** mulberry32 */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
