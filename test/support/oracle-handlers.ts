/**
 * A second opinion on every run of message hooks: a plain loop for each composition, written from the specification's table and
 * sentences alone. It knows no events, no states and nothing of `src/`; whatever runs the same script must come to the same end.
 *
 * Time is counted in whole ms from the start of the run, and calling costs nothing.
 */

export type Composition = "claim" | "rewrite" | "waterfall" | "notify";

export type Fields = {
  readonly content?: string;
  readonly cancelReason?: string;
  readonly metadata?: { readonly [key: string]: number };
};

/** What an answer means, by the specification. `nothing`: a claim declined, nothing defined, no change, or nobody cares. */
export type Meaning =
  | { readonly says: "nothing" }
  | { readonly says: "claim"; readonly result: unknown }
  | { readonly says: "define"; readonly fields: Fields; readonly cancel: boolean }
  | { readonly says: "replace"; readonly payload: unknown }
  | { readonly says: "cancel"; readonly reason?: string }
  /** No answer that this hook could do anything with: the handler has failed. */
  | { readonly says: "unusable" };

export type Conduct =
  | { readonly does: "answer"; readonly afterMs: number; readonly means: Meaning }
  | { readonly does: "throw"; readonly afterMs: number }
  | { readonly does: "hang" };

export type Role = {
  readonly id: string;
  /** ms, or null: as long as it likes. Who hangs has one, or the caller gives up. */
  readonly timeoutMs: number | null;
  readonly conduct: Conduct;
  readonly skipped: boolean;
};

export type Script = {
  readonly composition: Composition;
  /** In the order of the run. */
  readonly roles: readonly Role[];
  /** What the operator wants of a failed handler; only of rewrites and waterfalls. */
  readonly blocks: boolean;
  /** When the caller gives up. At one instant, the caller comes first; 0: before anybody is called. */
  readonly cancelAtMs: number | null;
};

export type Foretold = {
  readonly end: "claimed" | "declined" | "sent" | "cancelled" | "blocked" | "notified" | "aborted";
  /** Who claimed, cancelled, or blocked by failing. */
  readonly by: string | null;
  /** Of the claimer, as it returned it. */
  readonly result: unknown;
  /** What a rewrite defined, merged. */
  readonly fields: Fields;
  /** What a waterfall goes on with; null: the input. */
  readonly payload: unknown;
  /** Why a waterfall was cancelled. */
  readonly reason: string | null;
  /** Who was called, in order, and the replaced payload that it saw; null: the input. */
  readonly calls: readonly { readonly id: string; readonly saw: unknown }[];
  /** In the order of the run. */
  readonly failures: readonly { readonly id: string; readonly how: "failed" | "timed out" }[];
  readonly endedAtMs: number;
};

type Call = { readonly atMs: number; readonly failure: "failed" | "timed out" | null; readonly means: Meaning };

const NOTHING: Meaning = { says: "nothing" };

/** The clock decides: an answer at the deadline is too late. */
function call({ conduct, timeoutMs }: Role, calledAtMs: number): Call {
  const deadline = timeoutMs ?? Number.POSITIVE_INFINITY;
  if (conduct.does === "hang" || conduct.afterMs >= deadline) {
    return { atMs: calledAtMs + deadline, failure: "timed out", means: NOTHING };
  }
  const atMs = calledAtMs + conduct.afterMs;
  if (conduct.does === "throw" || conduct.means.says === "unusable") return { atMs, failure: "failed", means: NOTHING };
  return { atMs, failure: null, means: conduct.means };
}

/** What must come of a script. */
export function foretell(script: Script): Foretold {
  switch (script.composition) {
    case "notify":
      return foretellNotify(script);
    case "claim":
    case "rewrite":
    case "waterfall":
      return foretellOneByOne(script);
  }
}

function foretellOneByOne({ composition, roles, blocks, cancelAtMs }: Script): Foretold {
  const cancelAt = cancelAtMs ?? Number.POSITIVE_INFINITY;
  const calls: Foretold["calls"][number][] = [];
  const failures: Foretold["failures"][number][] = [];
  let clock = 0;
  let fields: Fields = {};
  let payload: unknown = null;

  const finish = (end: Foretold["end"], told: Partial<Foretold> = {}): Foretold => ({
    end,
    by: null,
    result: null,
    fields,
    payload,
    reason: null,
    calls,
    failures,
    endedAtMs: clock,
    ...told,
  });
  const abandoned = () => finish("aborted", { endedAtMs: cancelAt });

  for (const role of roles) {
    if (role.skipped) continue;
    if (cancelAt <= clock) return abandoned();
    calls.push({ id: role.id, saw: payload });
    const { atMs, failure, means } = call(role, clock);
    if (cancelAt <= atMs) return abandoned();
    clock = atMs;
    if (failure !== null) {
      failures.push({ id: role.id, how: failure });
      if (blocks) return finish("blocked", { by: role.id });
      continue;
    }
    switch (means.says) {
      case "claim":
        return finish("claimed", { by: role.id, result: means.result });
      case "define":
        fields = { ...fields, ...means.fields };
        if (means.cancel) return finish("cancelled", { by: role.id });
        break;
      case "replace":
        payload = means.payload;
        break;
      case "cancel":
        return finish("cancelled", { by: role.id, reason: means.reason ?? null });
      case "nothing":
      case "unusable":
        break;
    }
  }
  if (cancelAt <= clock) return abandoned();
  return finish(composition === "claim" ? "declined" : "sent");
}

function foretellNotify({ roles, cancelAtMs }: Script): Foretold {
  const cancelAt = cancelAtMs ?? Number.POSITIVE_INFINITY;
  const told = roles.filter(({ skipped }) => !skipped);
  const ended = told.map((role) => ({ role, ...call(role, 0) }));
  const lastMs = Math.max(0, ...ended.map(({ atMs }) => atMs));
  const aborted = cancelAt <= lastMs;
  return {
    end: aborted ? "aborted" : "notified",
    by: null,
    result: null,
    fields: {},
    payload: null,
    reason: null,
    calls: cancelAt <= 0 ? [] : told.map(({ id }) => ({ id, saw: null })),
    failures: ended.flatMap(({ role, failure, atMs }) =>
      failure === null || cancelAt <= atMs ? [] : [{ id: role.id, how: failure }],
    ),
    endedAtMs: aborted ? cancelAt : lastMs,
  };
}
