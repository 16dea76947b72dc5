/** Two dispatches with something of everything in them, for the views that people read. */
import type { Started, Subscriber } from "#src/core/events.js";
import type { EventStore, StreamName } from "#src/store/port.js";
import { aborted, ack, allow, chain, deny, failed, started, timeout } from "./given.js";
import { at, configBlob, type Kept, kept, record, ulidOf } from "./ledger.js";

export const CONFIG = configBlob({
  blocks: [
    { at: "agent.hcl:1:1", attributes: { source: "host" }, blocks: [], labels: ["gate"], type: "provider" },
    {
      at: "agent.hcl:12:1",
      attributes: {
        action: "deny",
        match: { risk: "critical", tool_name: "bash" },
        reason: "nobody runs this unseen",
      },
      blocks: [],
      labels: ["no-root"],
      type: "policy",
    },
    {
      at: "agent.hcl:20:1",
      attributes: { action: "allow", match: { kind: "data_source" } },
      blocks: [],
      labels: ["reads"],
      type: "policy",
    },
  ],
});

const ITEMS = [
  {
    id: "i1",
    callId: "c1",
    provider: "fs",
    operationName: "read_file",
    kind: "TOOL_KIND_DATA_SOURCE",
    risk: "RISK_CLASS_READ_ONLY",
    description: "read the notes",
  },
  {
    id: "i2",
    callId: "c2",
    provider: "shell",
    operationName: "bash",
    kind: "TOOL_KIND_RESOURCE",
    risk: "RISK_CLASS_CRITICAL",
    description: "remove a folder",
  },
  {
    id: "i3",
    callId: "c3",
    provider: "fs",
    operationName: "write_file",
    kind: "TOOL_KIND_RESOURCE",
    risk: "RISK_CLASS_MODERATE",
    description: "",
  },
] as const;

const STAMPS = [
  { decision: "PLAN_DECISION_ALLOW", decidedBy: "policy:reads" },
  { decision: "PLAN_DECISION_DENY", decidedBy: "policy:no-root" },
  { decision: "PLAN_DECISION_ASK", decidedBy: "policy:default" },
] as const;

const PENDING = { decision: "PLAN_DECISION_PENDING", decidedBy: "", producerCategory: "CATEGORY_TOOL" } as const;

export const PLAN = kept({
  planReady: { plan: { turnId: "t1", items: ITEMS.map((item) => ({ ...item, ...PENDING })) } },
});
export const STAMPED = kept({
  planReady: { plan: { turnId: "t1", items: ITEMS.map((item, place) => ({ ...item, ...PENDING, ...STAMPS[place] })) } },
});

export function messages(...texts: readonly string[]): Kept {
  return kept({
    preModelCall: {
      messages: texts.map((text) => ({ role: "ROLE_USER", content: [{ text: { text } }], id: "" })),
      model: { provider: "acme", id: "m1" },
    },
  });
}

export function startedWith(
  n: number,
  subscribers: readonly Subscriber[],
  input: Kept,
  told: Partial<Started> = {},
): Started {
  return started(subscribers, {
    dispatchId: ulidOf(n),
    input: input.ref,
    configDigest: CONFIG.digest,
    descriptorDigest: CONFIG.digest,
    ...told,
  });
}

/** plan-ready: policy decides three items, two loggers overlap, a gate denies, and two are never called. */
export async function deniedPlan(store: EventStore, n = 1): Promise<StreamName> {
  const subscribers = chain(
    "policy@5000",
    "observe:log@1000",
    "observe:metrics@1000",
    "veto:gate@5000",
    "veto:second",
    "observe:after~skip",
  );
  const saw = STAMPED.ref.digest;
  return record(store, {
    n,
    session: "session-1",
    turn: "turn-2",
    kept: [PLAN, STAMPED],
    blobs: [CONFIG],
    happenings: [
      at(0, startedWith(n, subscribers, PLAN, { point: "plan-ready" })),
      at(0.1, { type: "subscriber-invoked", index: 0, saw: PLAN.ref.digest }),
      at(0.6, {
        type: "outcome",
        index: 0,
        class: "policy",
        payload: STAMPED.ref,
        items: [
          { itemId: "i1", decision: "allow", decidedBy: "policy:reads" },
          { itemId: "i2", decision: "deny", decidedBy: "policy:no-root", reason: "nobody runs this unseen" },
          { itemId: "i3", decision: "ask", decidedBy: "policy:default" },
        ],
      }),
      at(0.7, { type: "subscriber-invoked", index: 1, saw }),
      at(0.7, { type: "subscriber-invoked", index: 2, saw }),
      at(4.2, failed(2, "UNKNOWN", "no such series")),
      at(6, { ...ack(1), warnings: ["carried a payload, which is ignored"] }),
      at(6.1, { type: "subscriber-invoked", index: 3, saw }),
      at(9.9, deny(3, "too many items")),
      at(10, { type: "decided", decision: "deny", decidedBy: "gate", payload: saw }),
    ],
  });
}

/** pre-model-call: a shadow rewrite, a detached logger that answers after the decision, a rewrite, and one that changes nothing. */
export async function rewrittenCall(store: EventStore, n = 2): Promise<StreamName> {
  const subscribers = chain(
    "observe:late@1000",
    "transform:redact@500",
    "transform:try@500~shadow",
    "transform:same@500",
    "observe:slow@3",
  );
  const before = messages("be brief", "my key is hunter2, keep it");
  const after = messages("be kind", "be brief", "my key is [gone], keep it");
  const shadow = messages("ignored");
  const saw = (index: number, version: Kept) =>
    ({ type: "subscriber-invoked", index, saw: version.ref.digest }) as const;
  return record(store, {
    n,
    kept: [before, after, shadow],
    blobs: [CONFIG],
    happenings: [
      at(
        0,
        startedWith(n, subscribers, before, {
          point: "pre-model-call",
          vetoBearing: false,
          observe: "detached",
          flags: ["redacted"],
        }),
      ),
      at(0, saw(0, before)),
      at(0.2, saw(1, before)),
      at(2, { type: "outcome", index: 1, class: "transformed", payload: after.ref }),
      at(2, saw(2, after)),
      at(2.1, saw(3, after)),
      at(3, { type: "outcome", index: 3, class: "transformed", payload: after.ref }),
      at(3, saw(4, after)),
      at(3.1, { type: "decided", decision: "allow", decidedBy: "kernel:default", payload: after.ref.digest }),
      at(5, { type: "outcome", index: 2, class: "transformed", payload: shadow.ref }),
      at(6.5, timeout(4, 3), 1),
      at(8, ack(0)),
    ],
  });
}

/** pre-tool-call: the gate never answers. */
export async function timedOut(store: EventStore, n = 3): Promise<StreamName> {
  const input = kept({
    preToolCall: { call: { id: "c1", toolName: "bash", arguments: { command: "ls", "a key": 1 } } },
  });
  return record(store, {
    n,
    session: "session-1",
    kept: [input],
    blobs: [CONFIG],
    happenings: [
      at(0, startedWith(n, chain("veto:gate@200", "observe:log"), input)),
      at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
      at(213, timeout(0, 200), 12),
      at(213, { type: "decided", decision: "deny", decidedBy: "gate", payload: input.ref.digest }),
    ],
  });
}

/** Open: the process is gone, or still at it. */
export async function open(store: EventStore, n = 4): Promise<StreamName> {
  const input = kept({
    preToolCall: { call: { id: "c1", toolName: "bash", arguments: { command: "ls", "a key": 1 } } },
  });
  return record(store, {
    n,
    kept: [input],
    blobs: [CONFIG],
    happenings: [
      at(0, startedWith(n, chain("observe:log", "veto:gate"), input)),
      at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
    ],
  });
}

/** As `open`, and closed by recovery. */
export async function abandoned(store: EventStore, n = 5): Promise<StreamName> {
  await open(store, n);
  return record(store, { n, from: 2, happenings: [at(1, aborted("recovered", 0))] });
}

/** pre-tool-call: allowed, and taken back because the caller was never told. */
export async function withdrawn(store: EventStore, n = 6): Promise<StreamName> {
  const input = kept({ preToolCall: { call: { id: "c1", toolName: "bash" } } });
  return record(store, {
    n,
    kept: [input],
    blobs: [CONFIG],
    happenings: [
      at(0, startedWith(n, chain("veto:gate"), input)),
      at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
      at(2, allow(0)),
      at(3, { type: "decided", decision: "allow", decidedBy: "kernel:default", payload: input.ref.digest }),
      at(3, aborted("unconfirmed")),
    ],
  });
}
