/** Every point, policy, way of recording, fault and append: what the caller is told, who was called, and what the ledger holds. */
import { describe, expect, it } from "vitest";
import type { Recording, Settings } from "#src/config/types.js";
import type { AbortCause } from "#src/core/events.js";
import type { ErrorCode } from "#src/errors.js";
import { openMemoryStore } from "#src/store/memory.js";
import { type Fault, FaultyStore, fromNth, onlyNth } from "../support/faulty-store.js";
import { ack, allow, delayed, Rig } from "../support/kernels.js";
import { VirtualClock } from "../support/virtual-clock.js";

type FaultKind = "refused" | "conflict" | "backlog" | "closed" | "lost reply" | "lost request" | "silent";

const FAULTS: Readonly<Record<FaultKind, { readonly fault: Fault; readonly code: ErrorCode }>> = {
  refused: { fault: { does: "refuse", code: "HL_STORE_UNAVAILABLE" }, code: "HL_STORE_UNAVAILABLE" },
  conflict: { fault: { does: "refuse", code: "HL_STORE_CONFLICT" }, code: "HL_STORE_CONFLICT" },
  backlog: { fault: { does: "refuse", code: "HL_STORE_BACKLOG" }, code: "HL_STORE_BACKLOG" },
  closed: { fault: { does: "refuse", code: "HL_STORE_CLOSED" }, code: "HL_STORE_CLOSED" },
  "lost reply": { fault: { does: "lose the reply" }, code: "HL_STORE_AMBIGUOUS" },
  "lost request": { fault: { does: "lose the request" }, code: "HL_STORE_AMBIGUOUS" },
  silent: { fault: { does: "hang" }, code: "HL_STORE_AMBIGUOUS" },
};

type Row = {
  readonly vetoBearing: boolean;
  readonly onStoreFailure: Settings["onStoreFailure"];
  readonly recording: Recording;
  readonly kind: FaultKind;
  /** Which of the three appends, from 1: with the first call, with the second, with the decision. */
  readonly append: 1 | 2 | 3;
  readonly lasting: boolean;
};

type Expected = {
  readonly cause: AbortCause | null;
  readonly calls: number;
  readonly ledger: readonly string[];
};

/** Two subscribers, one after the other, both slow: told from the rules, and from nothing of the product. */
function expected(row: Row): Expected {
  const { vetoBearing, onStoreFailure, recording, kind, append, lasting } = row;
  const answer = vetoBearing ? "allow" : "ack";
  const appends = [
    ["started", "invoked 0"],
    [`${answer} 0`, "invoked 1"],
    [`${answer} 1`, "decided allow by kernel:default"],
  ];
  const reached = kind === "lost reply" ? append : append - 1;
  const written = appends.slice(0, reached).flat();
  const goesOn = !vetoBearing && onStoreFailure === "continue" && kind !== "conflict";
  if (goesOn) return { cause: null, calls: 2, ledger: written };

  // With write-ahead nobody is called whose call is not known to be written; otherwise the failure is heard of while it runs. A
  // silent store has not failed before its time is over, and nobody but write-ahead waits for it meanwhile.
  const calledBefore = Math.min(append - 1, 2);
  const heardLate = kind === "silent" ? 2 : Math.min(append, 2);
  const calls = recording === "write-ahead" ? calledBefore : heardLate;

  // A conflict fences, a silent store may write yet: both leave the ledger alone. And so does one that still refuses.
  const mendable = kind === "lost reply" || (!lasting && kind !== "conflict" && kind !== "silent");
  if (!mendable || written.length === 0) return { cause: "store_unavailable", calls, ledger: written };
  if (reached === 3) return { cause: "unconfirmed", calls, ledger: [...written, "aborted unconfirmed"] };
  return { cause: "store_unavailable", calls, ledger: [...written, `aborted store_unavailable with ${reached - 1}`] };
}

async function check(row: Row): Promise<void> {
  const { vetoBearing, onStoreFailure, recording, append, lasting } = row;
  const { fault, code } = FAULTS[row.kind];
  const clock = new VirtualClock();
  const store = new FaultyStore(openMemoryStore(), lasting ? fromNth(append, fault) : onlyNth(append, fault));
  const part = vetoBearing ? ({ mode: "veto", does: allow } as const) : ({ mode: "observe", does: ack } as const);
  const rig = new Rig({
    store,
    clock,
    point: vetoBearing ? "pre-tool-call" : "post-tool-call",
    settings: { onStoreFailure, observeConcurrency: "sequential" },
    chain: [1, 2].map(() => ({ ...part, recording, does: delayed(clock, 5, part.does) })),
  });
  const result = await rig.dispatch();
  const { cause, calls, ledger } = expected(row);
  const where = JSON.stringify(row);
  expect(result, where).toMatchObject(
    cause === null
      ? { status: "decided", decision: "allow", allowed: true, recorded: false, storeError: code }
      : {
          status: "aborted",
          abortCause: cause,
          allowed: false,
          payload: null,
          recorded: false,
          storeError: code,
          reason: expect.stringMatching(`^${code}: `),
        },
  );
  expect(rig.calls.length, where).toBe(calls);
  expect(rig.lines.length, where).toBe(1);
  const recorded = (await rig.isRecorded(result.dispatchId)) ? await rig.recorded(result.dispatchId) : null;
  expect(recorded?.told ?? [], where).toEqual(ledger);
  expect(recorded?.diverged ?? null, where).toBeNull();
  if (cause !== null) expect(recorded?.verdict.allowed ?? false, where).toBe(false);
}

const PLACES = [true, false].flatMap((vetoBearing) =>
  (["abort", "continue"] as const).flatMap((onStoreFailure) =>
    (["barrier", "write-ahead"] as const).map((recording) => ({ vetoBearing, onStoreFailure, recording })),
  ),
);

describe.each(Object.keys(FAULTS) as FaultKind[])("an append that fails (%s)", (kind) => {
  it.each(PLACES)("should be judged as the rules say: %o", async (place) => {
    for (const append of [1, 2, 3] as const) {
      for (const lasting of [false, true]) await check({ ...place, kind, append, lasting });
    }
  });
});
