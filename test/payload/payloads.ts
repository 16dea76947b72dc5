/** Payloads that tests share: one of every hook point, each field that matters set. */

import type { HookPayloadInput } from "#src/payload/messages.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";

export const preModelCall = {
  preModelCall: {
    model: { provider: "acme", id: "large" },
    messages: [
      { role: "ROLE_USER", id: "m1", content: [{ text: { text: "Fix the build." } }] },
      {
        role: "ROLE_ASSISTANT",
        id: "m2",
        producedByModelId: "large",
        content: [
          { thinking: { text: "hm", signature: Uint8Array.of(0xff, 1) } },
          { toolUse: { id: "t1", name: "run", arguments: { command: "npm test", retries: 2, env: { CI: true } } } },
        ],
      },
    ],
  },
} as const satisfies HookPayloadInput;

export const planReady = {
  planReady: {
    plan: {
      turnId: "turn-1",
      items: [
        {
          id: "a",
          callId: "c1",
          provider: "fs",
          operationName: "write",
          input: { path: "/tmp/x" },
          decision: "PLAN_DECISION_PENDING",
          kind: "TOOL_KIND_RESOURCE",
          risk: "RISK_CLASS_HIGH",
          description: "writes a file",
          preview: { root: { group: { children: [{ text: { content: "diff", style: "TEXT_STYLE_BOLD" } }] } } },
          producerCategory: "CATEGORY_TOOL",
        },
        {
          id: "b",
          provider: "web",
          operationName: "fetch",
          decision: "PLAN_DECISION_DENY",
          decidedBy: "guard",
          kind: "TOOL_KIND_DATA_SOURCE",
        },
      ],
    },
  },
} as const satisfies HookPayloadInput;

export const preToolCall = {
  preToolCall: {
    call: {
      id: "c1",
      toolName: "run",
      arguments: { b: 1, a: [null, -0] },
      callContext: { sessionId: "s", turnId: "t", workingDirectory: "/w" },
    },
    planItem: { id: "a" },
  },
} as const satisfies HookPayloadInput;

export const everyPoint = [
  { sessionStart: { sessionId: "s", profile: "default", parentSessionId: "", workingDirectory: "/w" } },
  preModelCall,
  {
    postModelResponse: {
      message: { role: "ROLE_ASSISTANT", content: [] },
      model: { name: "acme", category: "CATEGORY_MODEL", protocolVersion: 1 },
      usage: { inputTokens: 10, outputTokens: 2n ** 60n, cacheReadTokens: 0 },
      costUsd: 0.25,
    },
  },
  preToolCall,
  planReady,
  {
    postToolCall: {
      call: { id: "c1" },
      error: { category: "TOOL_ERROR_CATEGORY_TIMEOUT", retryable: true, details: { after: 5 } },
    },
  },
  {
    postApply: {
      apply: {
        turnId: "t",
        items: [{ planItemId: "a", outcome: "APPLY_OUTCOME_APPLIED", toolResult: { payload: { ok: true } } }],
      },
    },
  },
  { sessionEnd: { sessionId: "s", status: "SESSION_STATUS_COMPLETED" } },
] as const satisfies readonly HookPayloadInput[];

export function payload(input: HookPayloadInput): Payload {
  return payloadFromView(input);
}
