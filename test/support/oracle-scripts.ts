/** Scripts for the oracle, at random and shrinking towards few, quick, well-behaved subscribers. */
import fc from "fast-check";
import type { Conduct, ItemVerdict, Role, Script } from "./oracle.js";

export type ScriptBounds = {
  /** Policy not counted. */
  readonly maxRoles?: number;
  /** ms; latencies go somewhat beyond. Few different values make ties frequent. */
  readonly maxTimeoutMs?: number;
  readonly budget?: boolean;
  readonly cancellation?: boolean;
  readonly observe?: readonly Script["observe"][];
};

export function scripts(bounds: ScriptBounds = {}): fc.Arbitrary<Script> {
  const { maxRoles = 6, maxTimeoutMs = 8, budget = true, cancellation = true } = bounds;
  const { observe = ["concurrent", "sequential", "detached"] } = bounds;
  const instants = fc.nat({ max: 2 * maxTimeoutMs });
  const budgets = instants.map((ms) => ms + 1);
  const anyScript = fc
    .record({
      vetoBearing: weighted(true, false),
      policy: fc.option(kernelPolicy(maxTimeoutMs), { freq: 2 }),
      roles: fc.array(anyRole(maxTimeoutMs), { maxLength: maxRoles, size: "max" }),
      observe: fc.constantFrom(...observe),
      budgetMs: budget ? fc.option(budgets, { freq: 2 }) : fc.constant(null),
      cancelAtMs: cancellation ? seldom(instants) : fc.constant(null),
    })
    .map(({ vetoBearing, policy, roles, ...rest }) => ({
      ...rest,
      vetoBearing,
      roles: cast(vetoBearing, policy, roles),
    }));
  // All ranges are small already; a bias towards their ends would leave most chains empty.
  return fc.noBias(anyScript);
}

/** Gives the roles their ids and leaves out whoever has no place at such a point. */
function cast(vetoBearing: boolean, policy: Role | null, roles: readonly Role[]): readonly Role[] {
  const placed = roles.filter(({ mode }) => vetoBearing || mode !== "veto");
  const named = placed.map((role, at) => ({ ...role, id: `${role.mode}-${at}` }));
  return vetoBearing && policy !== null ? [policy, ...named] : named;
}

function anyRole(maxTimeoutMs: number): fc.Arbitrary<Role> {
  const lines = fc.oneof(
    fc.constant({ mode: "observe" } as const),
    fc.record({ mode: fc.constant("veto" as const), says: weighted<"allow" | "deny">("allow", "deny") }),
    fc.record({
      mode: fc.constant("transform" as const),
      rewrite: fc.oneof(
        fc.constantFrom("a", "b").map((add) => ({ add })),
        fc.constantFrom("keep" as const, "clear" as const),
      ),
    }),
  );
  const rarely = weighted(false, true, 7);
  return fc
    .tuple(lines, conducts(maxTimeoutMs), timeouts(maxTimeoutMs), rarely, rarely)
    .map(([said, conduct, timeoutMs, skipped, shadow]) => ({ id: "", timeoutMs, conduct, skipped, shadow, ...said }));
}

function kernelPolicy(maxTimeoutMs: number): fc.Arbitrary<Role> {
  const decision = fc.constantFrom<ItemVerdict["decision"][]>("allow", "ask", "deny");
  return fc
    .record({
      timeoutMs: timeouts(maxTimeoutMs),
      conduct: conducts(maxTimeoutMs).filter(({ does }) => does !== "answer badly"),
      decisions: fc.array(decision, { maxLength: 3 }),
    })
    .map(({ timeoutMs, conduct, decisions }) => ({
      id: "kernel:policy",
      mode: "policy",
      timeoutMs,
      conduct,
      items: decisions.map((decision, at) => ({ itemId: `i${at}`, decision })),
    }));
}

function conducts(maxTimeoutMs: number): fc.Arbitrary<Conduct> {
  const afterMs = fc.nat({ max: maxTimeoutMs + 2 });
  return fc.oneof(
    {
      weight: 16,
      arbitrary: fc.record({ does: fc.constant("answer" as const), afterMs: fc.nat({ max: maxTimeoutMs >> 1 }) }),
    },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("answer" as const), afterMs }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("fail" as const), afterMs }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("answer badly" as const), afterMs }) },
    { weight: 1, arbitrary: fc.constant({ does: "hang" } as const) },
  );
}

/** Mostly long enough for an answer. */
function timeouts(maxMs: number): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: (maxMs >> 1) + 1, max: maxMs }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: maxMs }) },
  );
}

function weighted<T>(often: T, seldom: T, times = 3): fc.Arbitrary<T> {
  return fc.oneof({ weight: times, arbitrary: fc.constant(often) }, { weight: 1, arbitrary: fc.constant(seldom) });
}

function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
}

/** Which of the settlements, invocations and conclusions that race comes first; shrinks to chain order. */
export const schedules: fc.Arbitrary<readonly number[]> = fc.noBias(
  fc.array(fc.nat({ max: 7 }), { maxLength: 24, size: "max" }),
);
