/**
 * A second opinion on every dispatch: one plain loop over the chain, written from the specification's pseudocode and tables
 * alone. It knows no events, no states and nothing of `src/`; whatever runs the same script must come to the same result.
 *
 * Time is counted in whole ms from the start of the dispatch, calling costs nothing, and a payload is the list of the marks
 * that transforms have left on it. A test that drives something real maps marks to what its payloads hold (one mark, one
 * message, say) and lets each subscriber act out its script on the clock that the test injects.
 */

/** The whole of a payload: which marks it bears. The input bears none. */
export type Marks = readonly string[];

/** How a subscriber behaves once called. `afterMs` ≥ 0 counts from the call; one that hangs never settles by itself. */
export type Conduct =
  | { readonly does: "answer"; readonly afterMs: number }
  | { readonly does: "fail"; readonly afterMs: number }
  | { readonly does: "answer badly"; readonly afterMs: number }
  | { readonly does: "hang" };

export type ItemVerdict = { readonly itemId: string; readonly decision: "allow" | "ask" | "deny" };

/** What a proper answer says; only `conduct.does === "answer"` ever says it. */
export type Lines =
  | { readonly mode: "observe" }
  | { readonly mode: "transform"; readonly rewrite: "keep" | "clear" | { readonly add: string } }
  | { readonly mode: "veto"; readonly says: "allow" | "deny" }
  /** The kernel's own; at most one, at the head of the chain, at a veto-bearing point. It leaves the mark `policy`. */
  | { readonly mode: "policy"; readonly items: readonly ItemVerdict[] };

export type Role = {
  /** Unique in the chain; `kernel:policy` for policy. */
  readonly id: string;
  /** ms, ≥ 1. */
  readonly timeoutMs: number;
  readonly conduct: Conduct;
  /** Listed and never called. */
  readonly skipped?: boolean;
  /** Called, and without any say. */
  readonly shadow?: boolean;
} & Lines;

export type Script = {
  readonly vetoBearing: boolean;
  /** In chain order. Vetoes only where `vetoBearing`. */
  readonly roles: readonly Role[];
  readonly observe: "concurrent" | "sequential" | "detached";
  /** ms for the whole chain, ≥ 1. */
  readonly budgetMs: number | null;
  /** When the caller aborts. At one instant, the caller comes first; 0: before anybody is called. */
  readonly cancelAtMs: number | null;
};

/** What became of one call. `abandoned`: the caller aborted the dispatch before it settled. */
export type End =
  | { readonly how: "answered" | "failed" | "answered badly"; readonly atMs: number }
  /** `allowedMs`: what the call was given; less than the role's timeout when the chain's budget was the shorter. */
  | { readonly how: "timed out"; readonly atMs: number; readonly allowedMs: number }
  | { readonly how: "abandoned"; readonly atMs: number };

export type Call = {
  readonly index: number;
  readonly atMs: number;
  /** null: never called, because nothing was left of the chain's budget when its turn came. */
  readonly saw: Marks | null;
  readonly end: End;
};

export type FailureCategory = "TRANSFORM_FAILED" | "VETO_FAILED" | "UNKNOWN" | "INVALID_RESPONSE" | "TIMEOUT";

export type Expected = {
  readonly status: "decided" | "aborted";
  /** Only when aborted. */
  readonly cause: "hook_error" | "cancelled" | null;
  /** Who broke the chain; only for `hook_error`. */
  readonly abortedBy: string | null;
  /** Only when decided, like the next three. */
  readonly decision: "allow" | "deny" | null;
  readonly decidedBy: string | null;
  readonly payload: Marks | null;
  readonly plan: readonly {
    readonly itemId: string;
    readonly decision: "allow" | "ask" | "deny";
    readonly policyDecision: "allow" | "ask" | "deny";
  }[];
  readonly allowed: boolean;
  readonly concludedAtMs: number;
  /** In chain order. Those that end after `concludedAtMs` are detached observers. */
  readonly calls: readonly Call[];
  /** In chain order, those of late observers included. */
  readonly hookErrors: readonly {
    readonly subscriber: string;
    readonly mode: "observe" | "transform" | "veto";
    readonly category: FailureCategory;
  }[];
};

/** What must come of a script. */
export function foretell(script: Script): Expected {
  const { roles, vetoBearing, budgetMs } = script;
  const cancelAt = script.cancelAtMs ?? Number.POSITIVE_INFINITY;
  const callable = roles.flatMap((role, index) => (role.skipped ? [] : [{ role, index }]));
  const calls: Call[] = [];
  let clock = 0;
  let payload: Marks = [];
  let items: readonly ItemVerdict[] = [];

  for (let turn = 0; turn < callable.length; ) {
    if (cancelAt <= clock) return conclude({ cause: "cancelled", by: null });
    const { role, index } = callable[turn]!;

    if (hasNoSay(role) && script.observe === "detached") {
      calls.push({ index, atMs: clock, saw: payload, end: endOf(role, clock, role.timeoutMs) });
      turn += 1;
      continue;
    }

    const leftMs = budgetMs === null ? Number.POSITIVE_INFINITY : budgetMs - clock;
    if (leftMs <= 0) {
      calls.push({ index, atMs: clock, saw: null, end: { how: "timed out", atMs: clock, allowedMs: 0 } });
      return conclude(outOfTime(role));
    }

    let last = turn + 1;
    if (hasNoSay(role) && script.observe === "concurrent") {
      while (last < callable.length && hasNoSay(callable[last]!.role)) last += 1;
    }
    const together = callable.slice(turn, last).map((called) => ({
      ...called,
      end: endOf(called.role, clock, Math.min(called.role.timeoutMs, leftMs)),
    }));
    for (const { index, end } of together) calls.push({ index, atMs: clock, saw: payload, end });
    clock = Math.max(...together.map(({ end }) => end.atMs));
    turn = last;
    if (cancelAt <= clock) return conclude({ cause: "cancelled", by: null });

    const late = together.find(({ role, end }) => end.how === "timed out" && end.allowedMs < role.timeoutMs);
    if (late !== undefined) return conclude(outOfTime(late.role));
    if (hasNoSay(role)) continue;

    const answered = together[0]!.end.how === "answered";
    switch (role.mode) {
      case "observe":
        break;
      case "transform":
        if (!answered) return conclude({ cause: "hook_error", by: role });
        payload = rewritten(payload, role.rewrite);
        break;
      case "veto":
        if (!answered || role.says === "deny") return conclude({ decision: "deny", by: role });
        break;
      case "policy":
        if (!answered) return conclude({ decision: "deny", by: role });
        items = role.items;
        if (items.length > 0 && items.every(({ decision }) => decision === "deny")) {
          return conclude({ decision: "deny", by: role });
        }
        payload = [...payload, "policy"];
        break;
    }
  }
  if (cancelAt <= clock) return conclude({ cause: "cancelled", by: null });
  return conclude({ decision: "allow", by: null });

  function outOfTime(by: Role): Ending {
    return vetoBearing ? { decision: "deny", by } : { cause: "hook_error", by };
  }

  function conclude(ending: Ending): Expected {
    const cancelled = "cause" in ending && ending.cause === "cancelled";
    const made = calls.map((call) =>
      cancelled && call.end.atMs >= cancelAt ? { ...call, end: { how: "abandoned", atMs: cancelAt } as const } : call,
    );
    const shared = {
      concludedAtMs: cancelled ? cancelAt : clock,
      calls: made,
      hookErrors: made.flatMap(({ index, end }) => hookErrorOf(roles[index]!, end)),
    };
    if ("cause" in ending) {
      return {
        ...shared,
        status: "aborted",
        cause: ending.cause,
        abortedBy: ending.by?.id ?? null,
        decision: null,
        decidedBy: null,
        payload: null,
        plan: [],
        allowed: false,
      };
    }
    const { decision, by } = ending;
    const deniedWhole = decision === "deny" && by?.mode !== "policy";
    const plan = items.map((item) => ({
      itemId: item.itemId,
      decision: deniedWhole ? ("deny" as const) : item.decision,
      policyDecision: item.decision,
    }));
    return {
      ...shared,
      status: "decided",
      cause: null,
      abortedBy: null,
      decision,
      decidedBy: by === null ? "kernel:default" : by.id,
      payload,
      plan,
      allowed: decision === "allow" && plan.every((item) => item.decision === "allow"),
    };
  }
}

type Ending =
  | { readonly decision: "allow" | "deny"; readonly by: Role | null }
  | { readonly cause: "hook_error" | "cancelled"; readonly by: Role | null };

function hasNoSay(role: Role): boolean {
  return role.mode === "observe" || role.shadow === true;
}

/** The clock decides: an answer at the deadline is too late. */
function endOf({ conduct }: Role, calledAt: number, allowedMs: number): End {
  if (conduct.does === "hang" || conduct.afterMs >= allowedMs) {
    return { how: "timed out", atMs: calledAt + allowedMs, allowedMs };
  }
  const atMs = calledAt + conduct.afterMs;
  switch (conduct.does) {
    case "answer":
      return { how: "answered", atMs };
    case "fail":
      return { how: "failed", atMs };
    case "answer badly":
      return { how: "answered badly", atMs };
  }
}

function rewritten(payload: Marks, rewrite: "keep" | "clear" | { readonly add: string }): Marks {
  if (rewrite === "keep") return payload;
  return rewrite === "clear" ? [] : [...payload, rewrite.add];
}

/** Names the failing subscriber, never the kernel: policy has none. */
function hookErrorOf(role: Role, end: End): Expected["hookErrors"] {
  if (role.mode === "policy" || end.how === "answered" || end.how === "abandoned") return [];
  return [{ subscriber: role.id, mode: role.mode, category: categoryOf(role.mode, end.how) }];
}

function categoryOf(
  mode: "observe" | "transform" | "veto",
  how: "failed" | "answered badly" | "timed out",
): FailureCategory {
  switch (how) {
    case "timed out":
      return "TIMEOUT";
    case "answered badly":
      return "INVALID_RESPONSE";
    case "failed":
      return mode === "transform" ? "TRANSFORM_FAILED" : mode === "veto" ? "VETO_FAILED" : "UNKNOWN";
  }
}
