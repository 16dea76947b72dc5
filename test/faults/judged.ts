/** What a fault of one subscriber comes to in each mode, to the last event. */
import { expect } from "vitest";
import type { HookMode } from "#src/core/events.js";
import type { DispatchOptions } from "#src/dispatch/dispatcher.js";
import type { Kernel } from "#src/dispatch/kernel.js";
import type { DispatchResult } from "#src/dispatch/result.js";
import type { EventStore } from "#src/store/port.js";
import { recordedIn } from "../support/kernels.js";
import { INPUTS, POINT_OF } from "../support/subscriber-calls.js";

export const MODES = ["observe", "transform", "veto"] as const satisfies readonly HookMode[];

export type Judgement =
  /** Category by mode: UNKNOWN, TRANSFORM_FAILED, VETO_FAILED. */
  | "failed"
  | "crashed"
  | "invalid"
  | "timed out"
  /** No fault in this mode. */
  | "answered";

/** A fault, what it is, and in which modes it is something else. */
export type Row = readonly [fault: string, is: Judgement, except?: { readonly [mode in HookMode]?: Judgement }];

const BY_MODE = { observe: "UNKNOWN", transform: "TRANSFORM_FAILED", veto: "VETO_FAILED" } as const;
const ANSWERS = { observe: "ack", transform: "transformed", veto: "allow" } as const;

/** Dispatches the point at which a mode stands, with the fault for a turn. */
export async function dispatched(kernel: Kernel, mode: HookMode, options: DispatchOptions): Promise<DispatchResult> {
  return kernel.dispatch(INPUTS[POINT_OF[mode]], options);
}

/** The chain is one subscriber, `sub`. */
export async function expectJudged(
  store: EventStore,
  mode: HookMode,
  result: DispatchResult,
  judgement: Judgement,
  timeoutMs: number,
): Promise<void> {
  const { told, diverged, verdict } = await recordedIn(store, result.dispatchId);
  const { category, event } = told_(mode, judgement, timeoutMs);
  const fault = category === null ? [] : [{ subscriber: "sub", mode, category }];
  expect(result.hookErrors).toMatchObject(fault);
  expect(result.hookErrors).toHaveLength(fault.length);
  expect(told).toStrictEqual(["started", "invoked 0", event, conclusionOf(mode, judgement)]);
  expect(result).toMatchObject(verdictOf(mode, judgement, category));
  expect(diverged).toBeNull();
  expect(verdict).toMatchObject({ allowed: result.allowed, reason: result.reason, hookErrors: result.hookErrors });
}

function told_(mode: HookMode, judgement: Judgement, timeoutMs: number) {
  switch (judgement) {
    case "answered":
      return { category: null, event: `${ANSWERS[mode]} 0` };
    case "failed":
      return { category: BY_MODE[mode], event: `failed ${BY_MODE[mode]} 0` };
    case "crashed":
      return { category: "PROCESS_CRASHED", event: "failed PROCESS_CRASHED 0" };
    case "invalid":
      return { category: "INVALID_RESPONSE", event: "invalid INVALID_RESPONSE 0" };
    case "timed out":
      return { category: "TIMEOUT", event: `timeout 0 after ${timeoutMs}` };
  }
}

function conclusionOf(mode: HookMode, judgement: Judgement): string {
  if (judgement === "answered" || mode === "observe") return "decided allow by kernel:default";
  return mode === "veto" ? "decided deny by sub" : "aborted hook_error";
}

function verdictOf(mode: HookMode, judgement: Judgement, category: string | null): object {
  if (judgement === "answered" || mode === "observe") {
    return { status: "decided", decision: "allow", allowed: true, decidedBy: "kernel:default", reason: null };
  }
  const reason = expect.stringMatching(new RegExp(`^${category}: .`));
  return mode === "veto"
    ? { status: "decided", decision: "deny", allowed: false, decidedBy: "sub", reason, payload: expect.anything() }
    : { status: "aborted", abortCause: "hook_error", allowed: false, payload: null, reason };
}

/** One provider, `sub`, at the point of each mode. */
export function agentHcl(source: string, timeoutMs: number, settings = ""): string {
  const hooks = MODES.map(
    (mode) => `hook "${POINT_OF[mode]}" {\n  provider = "sub"\n  mode = "${mode}"\n  timeout_ms = ${timeoutMs}\n}\n`,
  );
  return `required_providers {\n  sub = { source = "${source}" }\n}\n${hooks.join("")}settings {\n${settings}\n}\n`;
}
