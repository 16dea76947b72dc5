/** All checks of one subscriber, one after the other, within a bounded time. */

import type { Stand } from "./ask.js";
import { type BenchParts, benchFor } from "./bench.js";
import type { Check } from "./check.js";
import { type Effort, explore, type Finding, retry, type Specimen } from "./explore.js";

export type ConformOptions = BenchParts & {
  readonly stands: readonly Stand[];
  readonly checks: readonly Check[];
  readonly runs: number;
  /** ms for everything. One check is run in any case, and one that is under way ends soon after. */
  readonly budgetMs: number;
  /** Before every run of a check. */
  readonly onRun: (at: Placed) => void;
};

/** A check at a stand. */
export type Placed = Stand & { readonly check: Check };
export type Checked = Placed & { readonly finding: Finding };

/** ms for one check, and for one of a subscriber that is silent on ordinary payloads */
const LIMIT_MS = 15_000;
const SILENT_LIMIT_MS = 5_000;

/**
 * A stand at which an ordinary payload gets no answer is checked for `answer` alone: the other checks compare with answers that
 * there are none of.
 */
export async function* conform(options: ConformOptions): AsyncGenerator<Checked> {
  const end = performance.now() + options.budgetMs;
  const all = options.stands.map((stand) => ({ stand, checks: checksAt(stand, options) }));
  const total = all.reduce((sum, { checks }) => sum + checks.length, 0);
  let left = total;
  for (const { stand, checks } of all) {
    const bench = benchFor(stand, options);
    // Who asked for other checks alone wants to see those.
    const settles = checks.some(({ name }) => name === "answer") && (left === total || performance.now() < end);
    const usual = settles ? await bench.settle() : "answered";
    for (const check of usual === "answered" ? checks : checks.filter(({ name }) => name === "answer")) {
      const placed = { point: stand.point, mode: stand.mode, check };
      const leftMs = Math.max(0, end - performance.now());
      const limitMs = Math.min(
        usual === "silence" ? SILENT_LIMIT_MS : LIMIT_MS,
        (leftMs / left) * GENEROSITY,
        leftMs / 2,
      );
      const effort: Effort = {
        runs: options.runs,
        limitMs,
        recovers: usual === "answered",
        onRun: () => options.onRun(placed),
      };
      const isOver = left < total && leftMs === 0;
      left--;
      yield { ...placed, finding: isOver ? OUT_OF_TIME : await explore(check, bench, effort) };
    }
    if (usual !== "answered") left -= checks.length - 1;
  }
}

/** Most checks take less than their share. */
const GENEROSITY = 4;
const OUT_OF_TIME: Finding = { ok: false, runs: 0, message: "not run: the time was up", specimen: undefined };

/** One check once more, on the specimen that it failed on. */
export async function reproduce(
  placed: Placed,
  specimen: Specimen,
  options: Omit<ConformOptions, "stands" | "checks">,
): Promise<Checked> {
  const bench = benchFor(placed, options);
  await bench.settle();
  const effort: Effort = {
    runs: options.runs,
    limitMs: Math.min(LIMIT_MS, options.budgetMs),
    recovers: false,
    onRun: () => options.onRun(placed),
  };
  return { ...placed, finding: await retry(placed.check, bench, specimen, effort) };
}

function checksAt({ mode }: Stand, { checks, subject }: ConformOptions): readonly Check[] {
  return checks.filter(
    (check) => check.modes.includes(mode) && (check.takes === "payload" || subject.exchange !== null),
  );
}
