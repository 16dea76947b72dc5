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
  return fc
    .record({
      vetoBearing: fc.boolean(),
      policy: fc.option(kernelPolicy(maxTimeoutMs)),
      roles: fc.array(anyRole(maxTimeoutMs), { maxLength: maxRoles }),
      observe: fc.constantFrom(...observe),
      budgetMs: budget ? fc.option(instants.map((ms) => ms + 1)) : fc.constant(null),
      cancelAtMs: cancellation ? fc.option(instants, { freq: 3 }) : fc.constant(null),
    })
    .map(({ vetoBearing, policy, roles, ...rest }) => ({
      ...rest,
      vetoBearing,
      roles: cast(vetoBearing, policy, roles),
    }));
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
  const rarely = fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });
  return fc
    .tuple(lines, conducts(maxTimeoutMs), fc.integer({ min: 1, max: maxTimeoutMs }), rarely, rarely)
    .map(([said, conduct, timeoutMs, skipped, shadow]) => ({ id: "", timeoutMs, conduct, skipped, shadow, ...said }));
}

function kernelPolicy(maxTimeoutMs: number): fc.Arbitrary<Role> {
  const decision = fc.constantFrom<ItemVerdict["decision"][]>("allow", "ask", "deny");
  return fc
    .record({
      timeoutMs: fc.integer({ min: 1, max: maxTimeoutMs }),
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
      weight: 8,
      arbitrary: fc.record({ does: fc.constant("answer" as const), afterMs: fc.nat({ max: maxTimeoutMs >> 1 }) }),
    },
    { weight: 2, arbitrary: fc.record({ does: fc.constant("answer" as const), afterMs }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("fail" as const), afterMs }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant("answer badly" as const), afterMs }) },
    { weight: 1, arbitrary: fc.constant({ does: "hang" } as const) },
  );
}

function weighted<T>(often: T, seldom: T): fc.Arbitrary<T> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(often) }, { weight: 1, arbitrary: fc.constant(seldom) });
}

/** Which of the settlements, invocations and conclusions that race comes first; shrinks to chain order. */
export const schedules: fc.Arbitrary<readonly number[]> = fc.array(fc.nat({ max: 7 }), { maxLength: 24 });
