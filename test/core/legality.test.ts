/** Every kind of event in every phase of a dispatch: taken, or a violation that says where, what was due and what came. */
import { describe, it } from "vitest";
import type { DispatchEvent } from "#src/core/events.js";
import { NEW } from "#src/core/state.js";
import {
  aborted,
  ack,
  allow,
  brokenBy,
  chain,
  Dispatch,
  decided,
  deny,
  failed,
  given,
  hookError,
  invoked,
  lost,
  started,
  timeout,
  timeoutError,
  transformed,
} from "../support/given.js";

type Phase = {
  readonly phase: string;
  readonly log: readonly DispatchEvent[];
  /** What is due, in the machine's words. */
  readonly due: string;
  readonly legal: readonly DispatchEvent[];
  readonly illegal: readonly (readonly [DispatchEvent, string])[];
};

const ALLOWED = decided("allow", "kernel:default");
const ALLOWED_TEXT = "decided allow by kernel:default on sha256:input";
const FIRST = started(chain("observe", "observe", "veto"));
const DETACHED = started(chain("observe", "observe", "veto"), { observe: "detached" });
const TRANSFORMING = started(chain("observe", "transform"), { observe: "detached" });
const CRASH = hookError("PROCESS_CRASHED");

const PHASES: readonly Phase[] = [
  {
    phase: "of a run of observers of which nobody is invoked",
    log: [FIRST],
    due: "subscriber-invoked 0 seeing sha256:input",
    legal: [invoked(0), aborted("cancelled"), aborted("store_unavailable"), aborted("recovered")],
    illegal: [
      [invoked(1), "subscriber-invoked 1 seeing sha256:input"],
      [invoked(2), "subscriber-invoked 2 seeing sha256:input"],
      [invoked(0, "p1"), "subscriber-invoked 0 seeing sha256:p1"],
      [ack(0), "outcome ack of 0"],
      [timeout(0), "timeout of 0 after 1000 ms"],
      [timeout(0, 0), "timeout of 0 after 0 ms"],
      [ALLOWED, ALLOWED_TEXT],
      [brokenBy(0, CRASH), "aborted (hook_error by 0)"],
      [aborted("unconfirmed"), "aborted (unconfirmed)"],
      [aborted("cancelled", 0), "aborted (cancelled with 0 in flight)"],
    ],
  },
  {
    phase: "of a run of observers of which one is invoked",
    log: [FIRST, invoked(0)],
    due: "subscriber-invoked 1 seeing sha256:input",
    legal: [
      invoked(1),
      ack(0),
      failed(0),
      timeout(0),
      aborted("cancelled", 0),
      aborted("store_unavailable", 0),
      aborted("recovered", 0),
    ],
    illegal: [
      [invoked(0), "subscriber-invoked 0 seeing sha256:input"],
      [invoked(2), "subscriber-invoked 2 seeing sha256:input"],
      [invoked(1, "p1"), "subscriber-invoked 1 seeing sha256:p1"],
      [invoked(3), "subscriber-invoked 3 seeing sha256:input"],
      [invoked(-1), "subscriber-invoked -1 seeing sha256:input"],
      [ack(1), "outcome ack of 1"],
      [ack(3), "outcome ack of 3"],
      [ack(-1), "outcome ack of -1"],
      [ack(0.5), "outcome ack of 0.5"],
      [ack(Number.NaN), "outcome ack of NaN"],
      [allow(0), "outcome allow of 0"],
      [lost(0), "outcome lost of 0"],
      [timeout(1), "timeout of 1 after 1000 ms"],
      [timeout(0, 999), "timeout of 0 after 999 ms"],
      [timeout(0, 1001), "timeout of 0 after 1001 ms"],
      [ALLOWED, ALLOWED_TEXT],
      [aborted("cancelled"), "aborted (cancelled)"],
      [aborted("cancelled", 1), "aborted (cancelled with 1 in flight)"],
      [aborted("cancelled", 0, 1), "aborted (cancelled with 0, 1 in flight)"],
      [aborted("unconfirmed", 0), "aborted (unconfirmed with 0 in flight)"],
      [brokenBy(0, CRASH, 0), "aborted (hook_error by 0 with 0 in flight)"],
      [{ ...aborted("cancelled", 0), index: 0 }, "aborted (cancelled by 0 with 0 in flight)"],
      [{ ...aborted("recovered", 0), error: CRASH }, "aborted (recovered with 0 in flight)"],
    ],
  },
  {
    phase: "in which two observers are to be joined",
    log: [FIRST, invoked(0), invoked(1)],
    due: "a settlement of 0, 1",
    legal: [ack(0), ack(1), timeout(1), failed(1), aborted("cancelled", 0, 1), aborted("recovered", 0, 1)],
    illegal: [
      [invoked(2), "subscriber-invoked 2 seeing sha256:input"],
      [transformed(0, "p1"), "outcome transformed of 0"],
      [deny(1), "outcome deny of 1"],
      [ALLOWED, ALLOWED_TEXT],
      [aborted("recovered"), "aborted (recovered)"],
      [aborted("recovered", 1, 0), "aborted (recovered with 1, 0 in flight)"],
      [{ ...aborted("recovered"), inFlight: [] }, "aborted (recovered)"],
    ],
  },
  {
    phase: "in which one observer has settled",
    log: [FIRST, invoked(0), invoked(1), ack(1)],
    due: "a settlement of 0",
    legal: [ack(0), aborted("cancelled", 0)],
    illegal: [
      [ack(1), "outcome ack of 1"],
      [timeout(1), "timeout of 1 after 1000 ms"],
      [invoked(1), "subscriber-invoked 1 seeing sha256:input"],
      [aborted("cancelled", 0, 1), "aborted (cancelled with 0, 1 in flight)"],
    ],
  },
  {
    phase: "that has come to an allow",
    log: [started(chain("veto")), invoked(0), allow(0)],
    due: ALLOWED_TEXT,
    legal: [ALLOWED, aborted("cancelled"), aborted("store_unavailable"), aborted("recovered")],
    illegal: [
      [decided("deny", "veto"), "decided deny by veto on sha256:input"],
      [decided("deny", "kernel:default"), "decided deny by kernel:default on sha256:input"],
      [decided("allow", "veto"), "decided allow by veto on sha256:input"],
      [decided("allow", "kernel:default", "p1"), "decided allow by kernel:default on sha256:p1"],
      [aborted("unconfirmed"), "aborted (unconfirmed)"],
      [brokenBy(0, CRASH), "aborted (hook_error by 0)"],
      [{ ...aborted("cancelled"), inFlight: [] }, "aborted (cancelled)"],
      [allow(0), "outcome allow of 0"],
      [invoked(0), "subscriber-invoked 0 seeing sha256:input"],
    ],
  },
  {
    phase: "that has come to a deny",
    log: [started(chain("veto", "observe")), invoked(0), deny(0)],
    due: "decided deny by veto on sha256:input",
    legal: [decided("deny", "veto"), aborted("cancelled"), aborted("store_unavailable")],
    illegal: [
      [ALLOWED, ALLOWED_TEXT],
      [decided("deny", "observe1"), "decided deny by observe1 on sha256:input"],
      [decided("deny", "kernel:policy"), "decided deny by kernel:policy on sha256:input"],
      [aborted("recovered"), "aborted (recovered)"],
      [invoked(1), "subscriber-invoked 1 seeing sha256:input"],
    ],
  },
  {
    phase: "that has come to an abort",
    log: [TRANSFORMING, invoked(0), invoked(1), failed(1, "PROCESS_CRASHED")],
    due: "aborted (hook_error by 1 with 0 in flight)",
    legal: [brokenBy(1, CRASH, 0), ack(0), aborted("cancelled", 0), aborted("store_unavailable", 0)],
    illegal: [
      [brokenBy(1, CRASH), "aborted (hook_error by 1)"],
      [brokenBy(0, CRASH, 0), "aborted (hook_error by 0 with 0 in flight)"],
      [brokenBy(1, hookError("PROCESS_CRASHED", "else"), 0), "aborted (hook_error by 1 with 0 in flight)"],
      [brokenBy(1, hookError("UNKNOWN"), 0), "aborted (hook_error by 1 with 0 in flight)"],
      [aborted("hook_error", 0), "aborted (hook_error with 0 in flight)"],
      [aborted("recovered", 0), "aborted (recovered with 0 in flight)"],
      [ALLOWED, ALLOWED_TEXT],
      [decided("deny", "transform1"), "decided deny by transform1 on sha256:input"],
    ],
  },
  {
    phase: "with a chain budget",
    log: [started(chain("veto@500"), { budgetMs: 200 }), invoked(0)],
    due: "a settlement of 0",
    legal: [timeout(0, 0), timeout(0, 1), timeout(0, 200)],
    illegal: [
      [timeout(0, 201), "timeout of 0 after 201 ms"],
      [timeout(0, 500), "timeout of 0 after 500 ms"],
      [timeout(0, -1), "timeout of 0 after -1 ms"],
      [timeout(0, Number.NaN), "timeout of 0 after NaN ms"],
    ],
  },
  {
    phase: "with more budget than the subscriber's own timeout",
    log: [started(chain("veto@100"), { budgetMs: 200 }), invoked(0)],
    due: "a settlement of 0",
    legal: [timeout(0, 0), timeout(0, 99), timeout(0, 100)],
    illegal: [[timeout(0, 101), "timeout of 0 after 101 ms"]],
  },
  {
    phase: "that is decided with late observers",
    log: [DETACHED, invoked(0), invoked(1), invoked(2), allow(2), ALLOWED],
    due: "a settlement of 0, 1",
    legal: [ack(0), failed(1), timeout(1), lost(0), aborted("unconfirmed", 0, 1)],
    illegal: [
      [allow(2), "outcome allow of 2"],
      [invoked(2), "subscriber-invoked 2 seeing sha256:input"],
      [timeout(0, 999), "timeout of 0 after 999 ms"],
      [ALLOWED, ALLOWED_TEXT],
      [decided("deny", "veto2"), "decided deny by veto2 on sha256:input"],
      [aborted("unconfirmed"), "aborted (unconfirmed)"],
      [aborted("cancelled", 0, 1), "aborted (cancelled with 0, 1 in flight)"],
      [aborted("recovered", 0, 1), "aborted (recovered with 0, 1 in flight)"],
      [aborted("store_unavailable", 0, 1), "aborted (store_unavailable with 0, 1 in flight)"],
      [brokenBy(2, CRASH, 0, 1), "aborted (hook_error by 2 with 0, 1 in flight)"],
    ],
  },
  {
    phase: "that is decided and settled",
    log: [started([]), ALLOWED],
    due: "no further event",
    legal: [aborted("unconfirmed")],
    illegal: [
      [ALLOWED, ALLOWED_TEXT],
      [invoked(0), "subscriber-invoked 0 seeing sha256:input"],
      [ack(0), "outcome ack of 0"],
      [timeout(0), "timeout of 0 after 1000 ms"],
      [lost(0), "outcome lost of 0"],
      [aborted("cancelled"), "aborted (cancelled)"],
      [aborted("recovered"), "aborted (recovered)"],
      [aborted("store_unavailable"), "aborted (store_unavailable)"],
      [aborted("unconfirmed", 0), "aborted (unconfirmed with 0 in flight)"],
    ],
  },
  {
    phase: "that is unconfirmed with a late observer",
    log: [DETACHED, invoked(0), invoked(1), invoked(2), allow(2), ack(1), ALLOWED, aborted("unconfirmed", 0)],
    due: "a settlement of 0",
    legal: [ack(0), lost(0), timeout(0)],
    illegal: [
      [aborted("unconfirmed", 0), "aborted (unconfirmed with 0 in flight)"],
      [ALLOWED, ALLOWED_TEXT],
      [ack(1), "outcome ack of 1"],
    ],
  },
  {
    phase: "that its own failure aborted, with a late observer",
    log: [TRANSFORMING, invoked(0), invoked(1), timeout(1), brokenBy(1, timeoutError(), 0)],
    due: "a settlement of 0",
    legal: [ack(0), lost(0), failed(0), timeout(0)],
    illegal: [
      [transformed(1, "p1"), "outcome transformed of 1"],
      [aborted("unconfirmed", 0), "aborted (unconfirmed with 0 in flight)"],
      [aborted("cancelled", 0), "aborted (cancelled with 0 in flight)"],
      [ALLOWED, ALLOWED_TEXT],
    ],
  },
  {
    phase: "that was cancelled with a veto in flight",
    log: [DETACHED, invoked(0), invoked(1), invoked(2), ack(0), aborted("cancelled", 1, 2)],
    due: "no further event",
    legal: [ack(1), failed(1), timeout(1), lost(1)],
    illegal: [
      [allow(2), "outcome allow of 2"],
      [deny(2), "outcome deny of 2"],
      [timeout(2), "timeout of 2 after 1000 ms"],
      [lost(2), "outcome lost of 2"],
      [ack(0), "outcome ack of 0"],
      [ALLOWED, ALLOWED_TEXT],
      [aborted("cancelled", 1, 2), "aborted (cancelled with 1, 2 in flight)"],
      [aborted("recovered", 1, 2), "aborted (recovered with 1, 2 in flight)"],
      [aborted("unconfirmed", 1, 2), "aborted (unconfirmed with 1, 2 in flight)"],
    ],
  },
];

const EVENTS_BUT_STARTED: readonly (readonly [DispatchEvent, string])[] = [
  [invoked(0), "subscriber-invoked 0 seeing sha256:input"],
  [ack(0), "outcome ack of 0"],
  [timeout(0), "timeout of 0 after 1000 ms"],
  [aborted("cancelled"), "aborted (cancelled)"],
  [aborted("recovered"), "aborted (recovered)"],
  [ALLOWED, ALLOWED_TEXT],
];

describe("a log that has not begun", () => {
  it.each(EVENTS_BUT_STARTED)("should begin with started, not with %j", (event, found) => {
    new Dispatch(NEW).refuses(event, "started", found);
  });
});

describe.each(PHASES)("a dispatch $phase", ({ log, due, legal, illegal }) => {
  const dispatch = given(...log);

  it.each(legal)("should take in %j", (event) => {
    dispatch.when(event);
  });

  it.each(illegal)("should refuse %j", (event, found) => {
    dispatch.refuses(event, due, found);
  });

  it("should refuse to start again", () => {
    dispatch.refuses(FIRST, "one started, at revision 0", "started (chain, reducer 1)");
  });
});
