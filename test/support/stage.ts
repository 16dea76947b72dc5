/** Acts a script of the oracle on the real dispatcher, with a clock that the test owns, and tells in the oracle's terms what came of it. */
import type { DispatchEvent, Subscriber } from "#src/core/events.js";
import { hookErrorsOf, verdictOf } from "#src/core/result.js";
import type { ChainAnswer, FrozenChain, Link } from "#src/dispatch/chain.js";
import { Dispatcher } from "#src/dispatch/dispatcher.js";
import type { DispatchResult } from "#src/dispatch/result.js";
import { telemetry } from "#src/dispatch/telemetry.js";
import { digest } from "#src/payload/digest.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";
import { createRedactor } from "#src/payload/redaction.js";
import { Verifier } from "#src/replay/verify.js";
import { openMemoryStore } from "#src/store/memory.js";
import { decodeEvent } from "#src/store/record/decode.js";
import { foldRecorded } from "#src/store/record/fold.js";
import { metadataOf } from "#src/store/record/metadata.js";
import { settings } from "./configs.js";
import { only } from "./only-chain.js";
import type { Call, End, Expected, ItemVerdict, Marks, Role, Script } from "./oracle.js";
import { VirtualClock } from "./virtual-clock.js";

const DISPATCH_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

export type Staged = {
  readonly live: DispatchResult;
  readonly told: Expected;
  readonly diverged: unknown;
  readonly replayed: ReturnType<typeof verdictOf>;
};

/** The script as admission lets it pass: where there is policy there is a plan, and a plan has nothing that a transform may change. */
export function admitted(script: Script): Script {
  if (!hasPolicy(script)) return script;
  const roles = script.roles.map((role): Role => (role.mode === "transform" ? { ...role, rewrite: "keep" } : role));
  return { ...script, roles };
}

function hasPolicy({ roles }: Script): boolean {
  return roles.some(({ mode }) => mode === "policy");
}

/** Of a script that admission lets pass. */
export async function stage(script: Script, schedule: readonly number[]): Promise<Staged> {
  let races = 0;
  const clock = new VirtualClock((count) => (schedule[races++] ?? 0) % count);
  const store = openMemoryStore();
  const links = script.roles.map((role, index) => linkOf(role, index, clock));
  const input = hasPolicy(script) ? planOf([]) : messagesOf([]);
  const { point } = input;
  const chain: FrozenChain = {
    point,
    vetoBearing: script.vetoBearing,
    links,
    subscribers: links.map(({ subscriber }) => subscriber),
  };
  const config = new TextEncoder().encode("{}");
  const dispatcher = new Dispatcher({
    settings: settings({
      observeConcurrency: script.observe,
      ...(script.budgetMs === null ? {} : { chainBudgetMs: script.budgetMs }),
    }),
    configBlob: { digest: digest("config", config), bytes: config },
    chains: only(chain),
    redactor: createRedactor({ patterns: [], secrets: [] }),
    store,
    storeTimeoutMs: 30_000,
    recovered: null,
    clock,
    telemetry: telemetry(),
    onHookError: () => {},
    newId: () => DISPATCH_ID,
    log: () => {},
  });
  const caller = new AbortController();
  if (script.cancelAtMs === 0) caller.abort();
  else if (script.cancelAtMs !== null) clock.first(script.cancelAtMs, () => caller.abort());
  const pending = dispatcher.dispatch(input, { signal: caller.signal });
  await clock.run();
  const live = await pending;
  await dispatcher.idle();
  const recorded = (await store.readStream(`hookdispatch-${DISPATCH_ID}`))!;
  const { state } = foldRecorded(recorded.events);
  if (state.kind === "new") throw new Error("nothing was recorded");
  const { diverged } = await new Verifier(store).verify(recorded);
  const events = recorded.events.map((event) => {
    const decoded = decodeEvent(event.type, event.data);
    if (!("event" in decoded)) throw new Error(decoded.found);
    return { event: decoded.event, atMs: metadataOf(event)!.offsetNs / 1e6 };
  });
  return { live, told: tell(script, live, events, hookErrorsOf(state)), diverged, replayed: verdictOf(state) };
}

type Timed = { readonly event: DispatchEvent; readonly atMs: number };

function tell(
  script: Script,
  live: DispatchResult,
  log: readonly Timed[],
  errors: ReturnType<typeof hookErrorsOf>,
): Expected {
  const conclusion = log.find(({ event }) => event.type === "decided" || event.type === "aborted")!;
  const by = conclusion.event.type === "aborted" ? conclusion.event.index : undefined;
  const shared = {
    concludedAtMs: conclusion.atMs,
    calls: script.roles.flatMap((_, index) => callOf(index, log, conclusion.atMs)),
    hookErrors: errors.map(({ subscriber, mode, category }) => ({
      subscriber,
      mode,
      category,
    })) as Expected["hookErrors"],
    allowed: live.allowed,
    decision: live.decision,
    decidedBy: live.decidedBy,
    payload: live.payload === null ? null : marksOf(live.payload),
    plan: live.planDecisions.map(({ itemId, decision, policyDecision }) => ({ itemId, decision, policyDecision })),
  };
  return live.status === "decided"
    ? { ...shared, status: "decided", cause: null, abortedBy: null }
    : {
        ...shared,
        status: "aborted",
        cause: live.abortCause as Expected["cause"],
        abortedBy: by === undefined ? null : script.roles[by]!.id,
      };
}

function callOf(index: number, log: readonly Timed[], concludedAtMs: number): Call[] {
  const mine = log.filter(({ event }) => "index" in event && event.index === index && event.type !== "aborted");
  const invoked = mine[0];
  if (invoked === undefined || invoked.event.type !== "subscriber-invoked") return [];
  const end = endOf(mine[1], concludedAtMs);
  const never = end.how === "timed out" && end.allowedMs === 0;
  return [{ index, atMs: invoked.atMs, saw: never ? null : marksSeen(invoked.event.saw), end }];
}

function endOf(settled: Timed | undefined, concludedAtMs: number): End {
  if (settled === undefined) return { how: "abandoned", atMs: concludedAtMs };
  const { event, atMs } = settled;
  if (event.type === "timeout") return { how: "timed out", atMs, allowedMs: event.budgetMs };
  if (event.type !== "outcome") throw new Error(`${event.type} is no end of a call`);
  return { how: event.class === "failed" ? "failed" : event.class === "invalid" ? "answered badly" : "answered", atMs };
}

function linkOf(role: Role, index: number, clock: VirtualClock): Link {
  const subscriber: Subscriber = {
    index,
    id: role.id,
    provider: "scripted",
    mode: role.mode,
    timeoutMs: role.timeoutMs,
    ...(role.skipped ? { skip: "skipped" } : {}),
    ...(role.shadow ? { shadow: true } : {}),
    producer: { name: "scripted", source: "host" },
  };
  return {
    subscriber,
    recording: "barrier",
    transport: {
      invoke: (call) =>
        new Promise<ChainAnswer>((resolve) => {
          const { conduct } = role;
          if (conduct.does === "hang") return;
          const answer = conduct.does === "answer" ? answerOf(role, call.payload) : faultOf(role, conduct.does);
          if (conduct.afterMs === 0) resolve(answer);
          else clock.timer(conduct.afterMs, () => resolve(answer));
        }),
    },
  };
}

function answerOf(role: Role, payload: Payload): ChainAnswer {
  switch (role.mode) {
    case "observe":
      return { class: "ack" };
    case "veto":
      return { class: role.says };
    case "transform": {
      if (role.rewrite === "keep") return { class: "transformed", payload };
      const marks = role.rewrite === "clear" ? [] : [...marksOf(payload), role.rewrite.add];
      return { class: "transformed", payload: messagesOf(marks) };
    }
    case "policy":
      return {
        class: "policy",
        payload: planOf([...marksOf(payload), "policy"], role.items),
        items: role.items.map((item) => ({ ...item, decidedBy: "policy:default" })),
      };
  }
}

function faultOf(role: Role, does: "fail" | "answer badly"): ChainAnswer {
  if (does === "answer badly") return { class: "invalid", error: { category: "INVALID_RESPONSE", message: "bad" } };
  const category = role.mode === "transform" ? "TRANSFORM_FAILED" : role.mode === "observe" ? "UNKNOWN" : "VETO_FAILED";
  return { class: "failed", error: { category, message: "failed" } };
}

const payloads = new Map<string, Payload>();
const seen = new Map<string, Marks>();

const STAMPS = { allow: "PLAN_DECISION_ALLOW", ask: "PLAN_DECISION_ASK", deny: "PLAN_DECISION_DENY" } as const;

/** The marks make a plan's name; policy's verdicts are stamped on its items, which only they need. */
function planOf(marks: Marks, items: readonly ItemVerdict[] = []): Payload {
  return remembered(marks, {
    planReady: {
      plan: {
        turnId: marks.join(" "),
        items: items.map(({ itemId, decision }) => ({ id: itemId, decision: STAMPS[decision] })),
      },
    },
  });
}

/** Every mark is a message. */
function messagesOf(marks: Marks): Payload {
  const messages = marks.map((text) => ({ role: "ROLE_USER" as const, content: [{ text: { text } }] }));
  return remembered(marks, { preModelCall: { messages } });
}

function remembered(marks: Marks, input: HookPayloadInput): Payload {
  const key = JSON.stringify(input);
  const known = payloads.get(key);
  if (known !== undefined) return known;
  const payload = payloadFromView(input);
  payloads.set(key, payload);
  seen.set(payload.ref.digest, marks);
  return payload;
}

function marksOf(payload: Payload): Marks {
  return marksSeen(payload.ref.digest);
}

function marksSeen(digested: string): Marks {
  const marks = seen.get(digested);
  if (marks === undefined) throw new Error(`nobody made the payload ${digested}`);
  return marks;
}
