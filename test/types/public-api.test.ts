/** The public API as its users' compilers see it: checked by `npm run types`. */
import { describe, expectTypeOf, it } from "vitest";
import {
  type AbortedResult,
  type Clock,
  type Config,
  type ConfigResult,
  type createKernel,
  type DecidedResult,
  type Diagnostic,
  type Digest,
  type DispatchOptions,
  type DispatchResult,
  type ERROR_CODES,
  type ErrorCode,
  type EventStore,
  type HOOK_POINTS,
  type HookContext,
  type HookErrorRecord,
  type HookHandlers,
  HookledgerError,
  type HookPayloadInput,
  type HookPoint,
  type Kernel,
  type KernelOptions,
  type loadConfig,
  type openStore,
  type Payload,
  type Place,
  type PlanItemDecision,
  type PlanReadyPayload,
  type PointHandlers,
  type PreModelCallPayload,
  type PreToolCallPayload,
  payloadFromBytes,
  payloadFromJson,
  payloadFromView,
  type Recovered,
  type Replayed,
  type recover,
  type replayStream,
  type UNKNOWN_FIELDS,
  type Usage,
  type Verification,
  type Verifier,
  type VetoVerdict,
  type verifyAll,
} from "#src/index.js";

describe("createKernel", () => {
  it("should take a configuration and a store, open or by name, and nothing else that is required", () => {
    type Wanted = {
      [Key in keyof KernelOptions]-?: undefined extends KernelOptions[Key] ? never : Key;
    }[keyof KernelOptions];
    expectTypeOf<Wanted>().toEqualTypeOf<"config" | "store">();
    expectTypeOf<KernelOptions["config"]>().toEqualTypeOf<Config | string>();
    expectTypeOf<KernelOptions["store"]>().toEqualTypeOf<EventStore | string>();
    expectTypeOf<typeof createKernel>().returns.toEqualTypeOf<Promise<Kernel>>();
  });

  it("should tell onHookError whose dispatch it was", () => {
    type Told = Parameters<KernelOptions["onHookError"] & {}>[0];
    expectTypeOf<Told>().toEqualTypeOf<HookErrorRecord & { readonly dispatchId: string }>();
  });

  it("should take a clock of four functions", () => {
    expectTypeOf<keyof Clock>().toEqualTypeOf<"now" | "wall" | "timer" | "defer">();
  });
});

describe("dispatch", () => {
  it("should take a plain object, a payload or bytes", () => {
    expectTypeOf<Parameters<Kernel["dispatch"]>[0]>().toEqualTypeOf<HookPayloadInput | Payload | Uint8Array>();
    expectTypeOf<Parameters<Kernel["dispatch"]>[1]>().toEqualTypeOf<DispatchOptions | undefined>();
  });

  it("should give a union that narrows by status", () => {
    expectTypeOf<Extract<DispatchResult, { status: "decided" }>>().toEqualTypeOf<DecidedResult>();
    expectTypeOf<Extract<DispatchResult, { status: "aborted" }>>().toEqualTypeOf<AbortedResult>();
    expectTypeOf<DispatchResult["status"]>().toEqualTypeOf<"decided" | "aborted">();
    expectTypeOf<DecidedResult["payload"]>().toEqualTypeOf<Payload>();
    expectTypeOf<DecidedResult["decision"]>().toEqualTypeOf<"allow" | "deny">();
    expectTypeOf<DecidedResult["abortCause"]>().toEqualTypeOf<null>();
    expectTypeOf<DecidedResult["planDecisions"]>().toEqualTypeOf<readonly PlanItemDecision[]>();
  });

  it("should leave an aborted dispatch nothing to go on with", () => {
    expectTypeOf<AbortedResult["payload"]>().toEqualTypeOf<null>();
    expectTypeOf<AbortedResult["allowed"]>().toEqualTypeOf<false>();
    expectTypeOf<AbortedResult["decision"]>().toEqualTypeOf<null>();
    expectTypeOf<null>().not.toExtend<AbortedResult["abortCause"]>();
  });

  it("should narrow to a decision by allowed", () => {
    expectTypeOf<Extract<DispatchResult, { allowed: true }>>().toEqualTypeOf<never>();
    const narrowed = (result: DispatchResult) => (result.allowed ? result.payload : null);
    expectTypeOf(narrowed).returns.toEqualTypeOf<Payload | null>();
  });
});

describe("HookHandlers", () => {
  it("should have a place for every hook point and no other", () => {
    expectTypeOf<keyof HookHandlers>().toEqualTypeOf<HookPoint>();
    expectTypeOf<keyof typeof HOOK_POINTS>().toEqualTypeOf<HookPoint>();
  });

  it("should have veto at the veto-bearing points alone", () => {
    type Vetoes = {
      [P in HookPoint]: undefined extends PointHandlers<P>["veto"]
        ? [PointHandlers<P>["veto"]] extends [undefined]
          ? never
          : P
        : P;
    }[HookPoint];
    expectTypeOf<Vetoes>().toEqualTypeOf<"pre-tool-call" | "plan-ready">();
    expectTypeOf<{ "post-apply": { veto: () => "allow" } }>().not.toExtend<HookHandlers>();
    expectTypeOf<{ "plan-ready": { veto: () => "allow" } }>().toExtend<HookHandlers>();
  });

  it("should give each handler its point's message and the context", () => {
    type Veto<P extends "pre-tool-call" | "plan-ready"> = Parameters<PointHandlers<P>["veto"] & {}>;
    expectTypeOf<Veto<"plan-ready">>().toEqualTypeOf<[payload: PlanReadyPayload, ctx: HookContext]>();
    expectTypeOf<Veto<"pre-tool-call">>().toEqualTypeOf<[payload: PreToolCallPayload, ctx: HookContext]>();
  });

  it("should take a verdict now or later, and nothing that is none", () => {
    expectTypeOf<{ "plan-ready": { veto: () => Promise<VetoVerdict> } }>().toExtend<HookHandlers>();
    expectTypeOf<{ decision: "deny"; reason: string }>().toExtend<VetoVerdict>();
    expectTypeOf<boolean>().not.toExtend<VetoVerdict>();
    expectTypeOf<"DENY">().not.toExtend<VetoVerdict>();
    expectTypeOf<undefined>().not.toExtend<VetoVerdict>();
    expectTypeOf<{ "plan-ready": { veto: () => void } }>().not.toExtend<HookHandlers>();
  });

  it("should want every field of a transformed message", () => {
    type Transform = PointHandlers<"pre-model-call">["transform"] & {};
    expectTypeOf<(payload: PreModelCallPayload) => PreModelCallPayload>().toExtend<Transform>();
    expectTypeOf<() => { messages: [] }>().toExtend<Transform>();
    expectTypeOf<() => object>().not.toExtend<Transform>();
    expectTypeOf<() => { messages: string }>().not.toExtend<Transform>();
    expectTypeOf<() => undefined>().not.toExtend<Transform>();
  });

  it("should let an observer return whatever it likes", () => {
    expectTypeOf<{ "session-end": { observe: () => Promise<number> } }>().toExtend<HookHandlers>();
  });
});

describe("payloads", () => {
  it("should be made of exactly one variant", () => {
    expectTypeOf<{ sessionEnd: { sessionId: string } }>().toExtend<HookPayloadInput>();
    expectTypeOf<{ planReady: object }>().toExtend<HookPayloadInput>();
    expectTypeOf<object>().not.toExtend<HookPayloadInput>();
    expectTypeOf<{ planned: object }>().not.toExtend<HookPayloadInput>();
  });

  it("should be written short, with numbers for int64 and known names for enums", () => {
    expectTypeOf<{
      postModelResponse: { usage: { inputTokens: number; outputTokens: bigint } };
    }>().toExtend<HookPayloadInput>();
    expectTypeOf<{ sessionEnd: { status: "SESSION_STATUS_COMPLETED" } }>().toExtend<HookPayloadInput>();
    expectTypeOf<{ sessionEnd: { status: "COMPLETED" } }>().not.toExtend<HookPayloadInput>();
    expectTypeOf<{ preToolCall: { call: { toolName: number } } }>().not.toExtend<HookPayloadInput>();
  });

  it("should be read whole, and be read only", () => {
    expectTypeOf<Usage["inputTokens"]>().toEqualTypeOf<bigint>();
    expectTypeOf<PreModelCallPayload["messages"]>().not.toExtend<unknown[]>();
    expectTypeOf<PreModelCallPayload[typeof UNKNOWN_FIELDS]>().toEqualTypeOf<Uint8Array | undefined>();
  });

  it("should come from a view, JSON or bytes", () => {
    expectTypeOf(payloadFromView).toEqualTypeOf<(input: HookPayloadInput) => Payload>();
    expectTypeOf(payloadFromJson).parameters.toEqualTypeOf<[text: string | Uint8Array]>();
    expectTypeOf(payloadFromBytes).parameter(0).toEqualTypeOf<Uint8Array>();
    expectTypeOf<Payload["ref"]["digest"]>().toEqualTypeOf<Digest>();
  });
});

describe("the ledger", () => {
  it("should be opened in a mode that is said", () => {
    expectTypeOf<Parameters<typeof openStore>[1]>().toEqualTypeOf<{ readonly mode: "read" | "write" }>();
    expectTypeOf<typeof openStore>().returns.resolves.toEqualTypeOf<EventStore>();
  });

  it("should be replayed, verified and recovered with what went wrong as data", () => {
    expectTypeOf<Extract<ReturnType<typeof replayStream>, { verdict: unknown }>>().toEqualTypeOf<Replayed>();
    expectTypeOf<Verifier["verify"]>().returns.resolves.toEqualTypeOf<Verification>();
    expectTypeOf<ReturnType<typeof verifyAll>>().toExtend<AsyncIterable<{ readonly checked: number }>>();
    expectTypeOf<ReturnType<typeof recover>>().toExtend<AsyncIterable<Recovered>>();
  });
});

describe("errors", () => {
  it("should have a known code, and a place where there is one", () => {
    expectTypeOf<HookledgerError["code"]>().toEqualTypeOf<ErrorCode>();
    expectTypeOf<keyof typeof ERROR_CODES>().toEqualTypeOf<ErrorCode>();
    expectTypeOf<HookledgerError["place"]>().toEqualTypeOf<Place | undefined>();
    expectTypeOf(HookledgerError).instance.toExtend<Error>();
  });

  it("should be a union where a configuration is loaded", () => {
    expectTypeOf<typeof loadConfig>().returns.resolves.toEqualTypeOf<ConfigResult>();
    expectTypeOf<Extract<ConfigResult, { ok: false }>["errors"]>().toEqualTypeOf<readonly Diagnostic[]>();
    expectTypeOf<Extract<ConfigResult, { ok: false }>>().not.toHaveProperty("config");
  });
});
