/** Acts a script on real plugins, runs and a ledger, with a clock that the test owns, and tells in the oracle's terms what came of it. */
import { isDeepStrictEqual } from "node:util";
import { clone } from "#src/messages/clone.js";
import type { MessageHookName } from "#src/messages/hooks.js";
import type { HandlerOptions, PluginApi } from "#src/messages/plugin.js";
import { RecordedRuns } from "#src/messages/recorded-runs.js";
import { MessagePlugins } from "#src/messages/registry.js";
import type { ClaimRun, NotifyRun, RewriteRun, WaterfallRun } from "#src/messages/runs.js";
import { createRedactor } from "#src/payload/redaction.js";
import { replayStream } from "#src/replay/replay.js";
import { type Divergence, Verifier } from "#src/replay/verify.js";
import { openMemoryStore } from "#src/store/memory.js";
import { payloadBytes } from "#src/store/record/payload-bytes.js";
import type { Composition, Foretold } from "./oracle-handlers.js";
import { VirtualClock } from "./virtual-clock.js";

/** What a handler does when it is called. `returns` is made anew for each call. */
export type Acting =
  | { readonly does: "answer"; readonly afterMs: number; readonly returns: () => unknown }
  /** `now`: before it has returned anything. */
  | { readonly does: "throw"; readonly afterMs: number; readonly now: boolean }
  | { readonly does: "hang" };

export type Actor = {
  readonly id: string;
  /** As a plugin writes them, right or wrong. */
  readonly options: { readonly [name: string]: unknown };
  readonly acts: Acting;
  /** Changes all that it was given. */
  readonly vandal: boolean;
  /** While it runs, it registers another handler, or takes itself out. */
  readonly meddles: "registers" | "leaves" | null;
};

export type Scene = {
  readonly hook: MessageHookName;
  readonly composition: Composition;
  /** In the order of registration. */
  readonly actors: readonly Actor[];
  readonly context: { readonly [name: string]: unknown };
  readonly blocks: boolean;
  readonly cancelAtMs: number | null;
};

export type Acted = {
  /** Null: nobody was to be asked, and nothing is recorded. */
  readonly told: Foretold | null;
  readonly hasHooks: boolean;
  readonly diverged: Divergence | null;
  /** Does the ledger replay to what the caller was told? */
  readonly replays: boolean;
};

const DISPATCH_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const CONTENT = "the original";
const PAYLOAD = { text: "the original", mediaUrls: ["m"] };
const EVENTS: { readonly [hook in MessageHookName]?: object } = {
  before_dispatch: { content: CONTENT },
  before_agent_reply: { cleanedBody: CONTENT },
  reply_dispatch: { ctx: {}, inboundAudio: false, shouldRouteToOriginating: false, sendPolicy: "allow" },
  message_sending: { to: "ada", content: CONTENT, metadata: { mediaUrls: ["m"] } },
  reply_payload_sending: { payload: PAYLOAD, kind: "final" },
  message_sent: { to: "ada", content: CONTENT, success: true },
};

export async function act(scene: Scene, schedule: readonly number[]): Promise<Acted> {
  let races = 0;
  const clock = new VirtualClock((count) => (schedule[races++] ?? 0) % count);
  const store = openMemoryStore();
  const plugins = new MessagePlugins();
  const calls: { id: string; saw: unknown }[] = [];
  for (const actor of scene.actors) load(plugins, actor, scene, calls, clock);
  const blocks = scene.blocks ? ({ onFailure: { [scene.hook]: "block" } } as const) : {};
  const runs = new RecordedRuns({
    plugins,
    store,
    redactor: createRedactor({ patterns: [], secrets: [] }),
    hooks: blocks,
    clock,
    newId: () => DISPATCH_ID,
  });
  const hasHooks = runs.hasHooks(scene.hook, scene.context);
  const caller = new AbortController();
  if (scene.cancelAtMs === 0) caller.abort();
  else if (scene.cancelAtMs !== null) clock.first(scene.cancelAtMs, () => caller.abort());
  let endedAtMs = 0;
  const pending = started(runs, scene, caller.signal).then((run) => {
    endedAtMs = clock.now();
    return run;
  });
  await clock.run();
  const run = await pending;
  await runs.idle();
  if (run.dispatchId === null) return { told: null, hasHooks, diverged: null, replays: true };
  const recorded = (await store.readStream(`hookdispatch-${DISPATCH_ID}`))!;
  const { diverged } = await new Verifier(store).verify(recorded);
  const told = tell(run, calls, endedAtMs);
  const replayed = replayStream(recorded);
  if (!("state" in replayed)) throw new Error(`does not replay: ${replayed.found}`);
  const bytes = await payloadBytes(store, recorded.events, replayed.payload);
  const json: unknown = bytes.kind === "found" ? JSON.parse(Buffer.from(bytes.bytes).toString()) : undefined;
  return { told, hasHooks, diverged, replays: isTold(run, replayed.verdict.decidedBy, json) };
}

type Run = ClaimRun<"before_dispatch"> | RewriteRun | WaterfallRun | NotifyRun;

function started(runs: RecordedRuns, { hook, composition, context }: Scene, signal: AbortSignal): Promise<Run> {
  const event = clone(EVENTS[hook] ?? {}) as never;
  const options = { signal };
  switch (composition) {
    case "claim":
      return runs.claim(hook as "before_dispatch", event, context as never, options);
    case "rewrite":
      return runs.rewrite(event, context as never, options);
    case "waterfall":
      return runs.waterfall(event, context as never, options);
    case "notify":
      return runs.notify(hook as "message_sent", event, context as never, options);
  }
}

function load(
  plugins: MessagePlugins,
  { id, options, acts, vandal, meddles }: Actor,
  { hook, composition }: Scene,
  calls: { id: string; saw: unknown }[],
  clock: VirtualClock,
): void {
  plugins.load({
    id,
    register(api: PluginApi) {
      const off = api.on(
        hook,
        ((event: { payload?: unknown }) => {
          calls.push({ id, saw: seenIn(event, composition) });
          if (meddles === "leaves") off();
          if (meddles === "registers") api.on(hook, intruder as never, { priority: 1000 });
          if (vandal) spoil(event);
          return acted(acts, clock);
        }) as never,
        options as HandlerOptions,
      );
    },
  });
}

function intruder(): never {
  throw new Error("nobody asks whom the run did not begin with");
}

/** The payload that a handler of a waterfall was given, or null: the input; of any other hook, whether it is the input. */
function seenIn(event: { payload?: unknown; content?: unknown }, composition: Composition): unknown {
  if (composition === "waterfall") return isDeepStrictEqual(event.payload, PAYLOAD) ? null : clone(event.payload);
  return event.content === "spoiled" ? "spoiled" : null;
}

function spoil(value: object): void {
  for (const key of Object.keys(value)) {
    const member: unknown = Reflect.get(value, key);
    if (typeof member === "object" && member !== null) spoil(member);
    Reflect.set(value, key, "spoiled");
  }
}

function acted(acts: Acting, clock: VirtualClock): unknown {
  if (acts.does === "hang") return new Promise(() => {});
  if (acts.does === "throw" && acts.now && acts.afterMs === 0) throw new Error("threw at once");
  const settle = (): unknown => {
    if (acts.does === "throw") throw new Error("threw later");
    return acts.returns();
  };
  if (acts.afterMs === 0) return acts.does === "throw" ? Promise.reject(new Error("threw later")) : settle();
  return new Promise((resolve, reject) => {
    clock.timer(acts.afterMs, () => {
      try {
        resolve(settle());
      } catch (error) {
        reject(error);
      }
    });
  });
}

function tell(run: Run, calls: Foretold["calls"], endedAtMs: number): Foretold {
  return {
    end: run.end,
    by: "by" in run ? run.by : null,
    result: run.end === "claimed" ? run.result : null,
    fields: {
      ...("content" in run && run.content !== CONTENT ? { content: run.content } : {}),
      ...("cancelReason" in run ? { cancelReason: run.cancelReason } : {}),
      ...("metadata" in run ? { metadata: run.metadata as never } : {}),
    } as Foretold["fields"],
    payload: "payload" in run && !isDeepStrictEqual(run.payload, PAYLOAD) ? run.payload : null,
    reason: "reason" in run ? (run.reason ?? null) : null,
    calls,
    failures: run.failures.map(({ subscriber, category }) => ({
      id: subscriber,
      how: category === "TIMEOUT" ? ("timed out" as const) : ("failed" as const),
    })),
    endedAtMs,
  };
}

/** `payload`: the recorded one that the run goes on with. */
function isTold(run: Run, decidedBy: string | null, payload: unknown): boolean {
  switch (run.end) {
    case "claimed":
      return decidedBy === run.by && isDeepStrictEqual(payload, run.result);
    case "cancelled":
    case "blocked":
      return decidedBy === run.by;
    case "sent":
      if ("content" in run)
        return isDeepStrictEqual(payload, run.content) || isDeepStrictEqual(memberAt(payload, "content"), run.content);
      return isDeepStrictEqual(memberAt(payload, "payload"), run.payload);
    case "declined":
    case "notified":
      return decidedBy === "kernel:default";
    case "aborted":
      return decidedBy === null;
  }
}

function memberAt(document: unknown, key: string): unknown {
  return (document as { event?: { [key: string]: unknown } }).event?.[key];
}
