/** What golden ledgers tell: one kind of dispatch each. A name, once released, keeps its meaning. */
import type { PolicyRule } from "#src/core/policy.js";
import type { ChainAnswer } from "#src/dispatch/chain.js";
import { type HookPayloadInput, type RiskClass, type ToolKind, UNKNOWN_FIELDS } from "#src/payload/messages.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";
import { FaultyStore } from "./faulty-store.js";
import { MESSAGE_SCENARIOS } from "./golden-scenarios-messages.js";
import { type Answering, GoldenStage, type Part, type Scene, SOME_DIGEST } from "./golden-stage.js";
import type { LedgerRows } from "./ledgers.js";

type Scenario = (stage: GoldenStage) => Promise<void>;

const ACK: ChainAnswer = { class: "ack" };
const ALLOW: ChainAnswer = { class: "allow" };
const DENY: ChainAnswer = { class: "deny", reason: "writes outside the workspace" };

const TOOL_CALL: HookPayloadInput = {
  preToolCall: {
    call: {
      id: "call-1",
      toolName: "write_file",
      arguments: { path: "/etc/hosts", mode: 420, force: true, lines: ["127.0.0.1 localhost", null], empty: {} },
      callContext: { sessionId: "s-1", turnId: "t-1", workingDirectory: "/srv/app" },
      [UNKNOWN_FIELDS]: Uint8Array.of(0xfa, 0x3e, 3, 1, 2, 3),
    },
  },
};
const MODEL_CALL: HookPayloadInput = {
  preModelCall: {
    messages: [
      { role: "ROLE_USER", content: [{ text: { text: "Größe? 👍 \u2028" } }], id: "m-1" },
      { role: "ROLE_ASSISTANT", content: [{ image: { data: Uint8Array.of(0, 255, 128), mediaType: "image/png" } }] },
    ],
    model: { provider: "acme", id: "large" },
  },
};
const PLAN: HookPayloadInput = {
  planReady: {
    plan: {
      turnId: "t-1",
      items: [
        planItem("read", "TOOL_KIND_DATA_SOURCE", "RISK_CLASS_READ_ONLY"),
        planItem("write", "TOOL_KIND_RESOURCE", "RISK_CLASS_HIGH"),
        planItem("delete", "TOOL_KIND_RESOURCE", "RISK_CLASS_CRITICAL"),
        {
          ...planItem("denied", "TOOL_KIND_RESOURCE", "RISK_CLASS_LOW"),
          decision: "PLAN_DECISION_DENY",
          decidedBy: "user",
        },
      ],
    },
  },
};
const SESSION_END: HookPayloadInput = { sessionEnd: { sessionId: "s-1", status: "SESSION_STATUS_COMPLETED" } };
const RULES: readonly PolicyRule[] = [
  { name: "no-deletes", match: { tool_name: "delete" }, action: "deny", reason: "deleting is for people" },
  { name: "writes", match: { kind: "resource", provider: "filesystem" }, action: "ask" },
];

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  allow: (stage) =>
    stage.dispatch(
      atToolCall(veto("guard", ALLOW), { mode: "veto", id: "auditor:strict", subscriptionId: "strict", does: ALLOW }),
      TOOL_CALL,
    ),

  "empty-chain": (stage) => stage.dispatch(atToolCall(), TOOL_CALL),

  "deny-plugin": (stage) =>
    stage.dispatch(atToolCall(veto("guard", DENY), { mode: "observe", id: "late", does: ACK }), TOOL_CALL),

  "deny-timeout": (stage) => stage.dispatch(atToolCall({ mode: "veto", id: "guard", timeoutMs: 250 }), TOOL_CALL),

  "deny-timeout-noticed-late": async (stage) => {
    const scene = atToolCall({ mode: "veto", id: "guard", timeoutMs: 250, afterMs: 10, does: ALLOW });
    const { result } = await stage.begin(scene, TOOL_CALL);
    stage.clock.block(300);
    await stage.clock.run();
    await result;
  },

  "deny-crash": (stage) =>
    stage.dispatch(atToolCall(veto("guard", failed("PROCESS_CRASHED", "the connection was lost"))), TOOL_CALL),

  "deny-invalid": (stage) => stage.dispatch(atToolCall(veto("guard", invalid("decision 7 is unknown"))), TOOL_CALL),

  "deny-thrown": (stage) =>
    stage.dispatch(atToolCall(veto("guard", failed("VETO_FAILED", "TypeError: no such rule"))), TOOL_CALL),

  transform: (stage) =>
    stage.dispatch(
      atModelCall(
        { mode: "observe", id: "before", does: ACK },
        { mode: "transform", id: "redactor", afterMs: 2.5, does: withMessage("be brief") },
        { mode: "transform", id: "same", does: (payload) => ({ class: "transformed", payload }) },
        { mode: "transform", id: "emptier", does: emptied },
        { mode: "observe", id: "after", does: ACK },
      ),
      MODEL_CALL,
    ),

  "transform-rejected": (stage) =>
    stage.dispatch(
      atModelCall(
        { mode: "transform", id: "mutator", does: invalid("changed immutable field model.id") },
        { mode: "observe", id: "after", does: ACK },
      ),
      MODEL_CALL,
    ),

  "transform-failed": (stage) =>
    stage.dispatch(
      atModelCall({ mode: "transform", id: "mutator", does: failed("TRANSFORM_FAILED", "out of ideas") }),
      MODEL_CALL,
    ),

  "policy-mixed": (stage) => stage.dispatch(atPlan(RULES, veto("guard", ALLOW)), PLAN),

  "policy-denies-all": (stage) =>
    stage.dispatch(atPlan([{ name: "frozen", match: {}, action: "deny" }], veto("guard", ALLOW)), PLAN),

  "policy-then-plugin": (stage) => stage.dispatch(atPlan(RULES, veto("guard", DENY)), PLAN),

  "policy-no-items": (stage) => stage.dispatch(atPlan(RULES), { planReady: { plan: { turnId: "t-1", items: [] } } }),

  "observers-concurrent": (stage) => stage.dispatch(observers("concurrent"), SESSION_END),

  "observers-sequential": (stage) => stage.dispatch(observers("sequential"), SESSION_END),

  "observers-detached": (stage) => stage.dispatch(observers("detached"), SESSION_END),

  cancelled: async (stage) => {
    const caller = new AbortController();
    stage.clock.first(5, () => caller.abort());
    const scene = atToolCall({ mode: "observe", id: "slow" }, { mode: "observe", id: "slower" });
    await stage.dispatch(scene, TOOL_CALL, { signal: caller.signal });
  },

  "cancelled-before": (stage) =>
    stage.dispatch(atToolCall(veto("guard", ALLOW)), TOOL_CALL, { signal: AbortSignal.abort() }),

  "store-unavailable": async (stage) => {
    stage.store = new FaultyStore(stage.store, (_, { events }) =>
      events.some(({ type }) => type === "decided") ? { does: "refuse", code: "HL_STORE_FULL" } : null,
    );
    await stage.dispatch(atToolCall({ mode: "veto", id: "guard", afterMs: 3, does: ALLOW }), TOOL_CALL);
  },

  unconfirmed: async (stage) => {
    stage.store = new FaultyStore(stage.store, (_, { events }) =>
      events.some(({ type }) => type === "decided") ? { does: "lose the reply" } : null,
    );
    await stage.dispatch(atToolCall({ mode: "veto", id: "guard", afterMs: 3, does: ALLOW }), TOOL_CALL);
  },

  open: async (stage) => {
    await stage.begin(atToolCall({ mode: "observe", id: "slow" }, veto("guard", ALLOW)), TOOL_CALL);
  },

  recovered: async (stage) => {
    await stage.begin(atToolCall({ mode: "observe", id: "slow" }, { mode: "observe", id: "slower" }), TOOL_CALL, {
      session: "s-1",
    });
    await stage.dieAndRecover();
  },

  lost: async (stage) => {
    const scene = atToolCall({ mode: "observe", id: "slow" }, veto("guard", ALLOW), { mode: "observe", id: "slower" });
    await stage.begin({ ...scene, settings: { observeConcurrency: "detached" } }, TOOL_CALL);
    await stage.dieAndRecover();
  },

  "budget-denies": (stage) =>
    stage.dispatch(
      { ...atToolCall({ mode: "veto", id: "slow" }, veto("guard", ALLOW)), settings: { chainBudgetMs: 40 } },
      TOOL_CALL,
    ),

  "budget-aborts": (stage) =>
    stage.dispatch(
      {
        ...atModelCall({ mode: "observe", id: "slow" }, { mode: "observe", id: "slower" }),
        settings: { chainBudgetMs: 40 },
      },
      MODEL_CALL,
    ),

  shadow: (stage) =>
    stage.dispatch(
      atToolCall({ mode: "veto", id: "candidate", shadow: true, does: DENY }, veto("guard", ALLOW)),
      TOOL_CALL,
    ),

  skipped: (stage) =>
    stage.dispatch(
      atToolCall({ mode: "veto", id: "switched-off", skip: "disabled by its owner", does: DENY }, veto("guard", ALLOW)),
      TOOL_CALL,
    ),

  redacted: (stage) =>
    stage.dispatch(
      {
        ...atModelCall(
          { mode: "transform", id: "leaky", does: withMessage("the key is sk-12345678") },
          { mode: "observe", id: "broken", does: failed("UNKNOWN", "no access with hunter2hunter2") },
        ),
        settings: { redact: ["sk-[0-9]+"] },
        secrets: ["hunter2hunter2"],
      },
      MODEL_CALL,
    ),

  "large-payload": (stage) =>
    stage.dispatch(atModelCall({ mode: "transform", id: "writer", does: withMessage("long ".repeat(1000)) }), {
      preModelCall: {
        messages: [{ role: "ROLE_USER", content: [{ text: { text: "story ".repeat(1000) } }] }],
        model: { provider: "acme", id: "large" },
      },
    }),

  "session-and-turn": (stage) =>
    stage.dispatch({ ...atToolCall(veto("guard", ALLOW)), traced: true }, TOOL_CALL, {
      session: 'Sitzung "1"',
      turn: "tour n° 1",
    }),

  warnings: (stage) =>
    stage.dispatch(
      atToolCall(veto("guard", { ...ALLOW, warnings: ["the answer came with unknown fields"] })),
      TOOL_CALL,
    ),

  producers: (stage) =>
    stage.dispatch(
      atToolCall({
        mode: "veto",
        id: "guard",
        does: ALLOW,
        producer: { version: "1.2.3", source: "grpc+unix:guard.sock", category: "tool", digest: SOME_DIGEST },
      }),
      TOOL_CALL,
    ),

  several: async (stage) => {
    await stage.dispatch(atToolCall(veto("guard", ALLOW)), TOOL_CALL, { session: "s-1", turn: "t-1" });
    await stage.dispatch(atToolCall(veto("guard", DENY)), TOOL_CALL, { session: "s-1", turn: "t-2" });
    await stage.dispatch(atToolCall(veto("guard", ALLOW)), TOOL_CALL, { session: "s-2" });
  },

  ...MESSAGE_SCENARIOS,
};

/** The ledger that a scenario leaves, the same every time. */
export async function ledgerOfScenario(name: string): Promise<LedgerRows> {
  const stage = new GoldenStage(name);
  await SCENARIOS[name]!(stage);
  return stage.rows();
}

function atToolCall(...chain: readonly Part[]): Scene {
  return { point: "pre-tool-call", chain };
}

function atModelCall(...chain: readonly Part[]): Scene {
  return { point: "pre-model-call", chain };
}

function atPlan(policy: readonly PolicyRule[], ...chain: readonly Part[]): Scene {
  return { point: "plan-ready", policy, chain };
}

function observers(observeConcurrency: "concurrent" | "sequential" | "detached"): Scene {
  return {
    point: "session-end",
    settings: { observeConcurrency },
    chain: [
      { mode: "observe", id: "slow", afterMs: 20, does: ACK },
      { mode: "observe", id: "quick", afterMs: 1, does: ACK },
      { mode: "observe", id: "broken", afterMs: 10, does: failed("UNKNOWN", "disk full") },
      { mode: "observe", id: "stuck", timeoutMs: 30 },
    ],
  };
}

function veto(id: string, does: Answering): Part {
  return { mode: "veto", id, does };
}

function failed(
  category: "PROCESS_CRASHED" | "VETO_FAILED" | "TRANSFORM_FAILED" | "UNKNOWN",
  message: string,
): ChainAnswer {
  return { class: "failed", error: { category, message } };
}

function invalid(message: string): ChainAnswer {
  return { class: "invalid", error: { category: "INVALID_RESPONSE", message } };
}

function withMessage(text: string): Answering {
  return () => transformed({ messages: [{ role: "ROLE_USER", content: [{ text: { text } }], id: "m-9" }] });
}

function emptied(): ChainAnswer {
  return transformed({ messages: [] });
}

function transformed(changed: { readonly messages: readonly object[] }): ChainAnswer {
  const payload: Payload = payloadFromView({ preModelCall: { model: { provider: "acme", id: "large" }, ...changed } });
  return { class: "transformed", payload };
}

function planItem(id: string, kind: ToolKind, risk: RiskClass) {
  return {
    id,
    callId: `call-${id}`,
    provider: "filesystem",
    operationName: id,
    kind,
    risk,
    decision: "PLAN_DECISION_PENDING" as const,
  };
}
