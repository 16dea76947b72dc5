/** Calls of subscribers on a clock that only tests move. */

import type { Provider, Source } from "#src/config/types.js";
import type { HookMode } from "#src/core/events.js";
import type { HookPoint } from "#src/core/points.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { payloadFromView } from "#src/payload/payload.js";
import type { Invocation } from "#src/subscribers/port.js";

export class ManualClock {
  /** ms */
  now = 0;
  advance(ms: number): void {
    this.now += ms;
  }
}

/** A plausible payload for each point. */
export const INPUTS = {
  "session-start": { sessionStart: { sessionId: "s-1", profile: "default", workingDirectory: "/work" } },
  "pre-model-call": {
    preModelCall: {
      messages: [{ role: "ROLE_USER", content: [{ text: { text: "hello" } }], id: "m-1" }],
      model: { provider: "acme", id: "large" },
    },
  },
  "post-model-response": {
    postModelResponse: {
      message: { role: "ROLE_ASSISTANT", content: [{ text: { text: "hi" } }], id: "m-2" },
      costUsd: 0.25,
    },
  },
  "pre-tool-call": { preToolCall: { call: { id: "c-1", toolName: "read", arguments: { path: "a.txt" } } } },
  "plan-ready": {
    planReady: { plan: { turnId: "t-1", items: [{ id: "i-1", provider: "filesystem", operationName: "write" }] } },
  },
  "post-tool-call": { postToolCall: { call: { id: "c-1", toolName: "read" }, result: { payload: { ok: true } } } },
  "post-apply": { postApply: { apply: { turnId: "t-1", items: [] } } },
  "session-end": { sessionEnd: { sessionId: "s-1", status: "SESSION_STATUS_COMPLETED" } },
} as const satisfies Record<HookPoint, HookPayloadInput>;

/** A point at which a mode may stand. */
export const POINT_OF: Readonly<Record<HookMode, HookPoint>> = {
  observe: "session-start",
  transform: "pre-model-call",
  veto: "pre-tool-call",
};

export type TestCall = Invocation & {
  readonly clock: ManualClock;
  readonly abort: () => void;
  /** Was a signal asked for? */
  readonly signalMade: () => boolean;
};

export function call(
  mode: HookMode,
  overrides: Partial<Omit<Invocation, "mode" | "signal" | "onAbort" | "remainingMs">> = {},
): TestCall {
  const clock = new ManualClock();
  const point = overrides.point ?? POINT_OF[mode];
  const timeoutMs = overrides.timeoutMs ?? 5_000;
  let controller: AbortController | undefined;
  let aborted = false;
  let listener: (() => void) | undefined;
  return {
    dispatchId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    point,
    mode,
    payload: overrides.payload ?? payloadFromView(INPUTS[point]),
    subscriptionId: undefined,
    session: undefined,
    turn: undefined,
    traceparent: undefined,
    ...overrides,
    timeoutMs,
    get signal() {
      controller ??= new AbortController();
      return controller.signal;
    },
    onAbort: (cancel) => {
      if (aborted) cancel();
      else listener = cancel;
    },
    remainingMs: () => Math.max(0, timeoutMs - clock.now),
    clock,
    abort: () => {
      aborted = true;
      listener?.();
      controller ??= new AbortController();
      controller.abort();
    },
    signalMade: () => controller !== undefined,
  };
}

export function provider(source: Source, overrides: Partial<Provider> = {}): Provider {
  return {
    name: "sub",
    sourceText: source.kind === "grpc" ? `grpc:${source.target}` : source.kind,
    source,
    sensitive: [],
    place: { file: "agent.hcl", line: 2, col: 3 },
    ...overrides,
  };
}
