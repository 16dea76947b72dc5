/** Dispatches for golden ledgers: the real dispatcher with a clock, ids, a writer and subscribers that are the same every time. */
import { createHash } from "node:crypto";
import type { Settings } from "#src/config/types.js";
import type { Digest, Mode, Producer, Subscriber } from "#src/core/events.js";
import { HOOK_POINTS, type HookPoint } from "#src/core/points.js";
import type { PolicyRule } from "#src/core/policy.js";
import type { ChainAnswer, Link } from "#src/dispatch/chain.js";
import { Dispatcher, type DispatchOptions } from "#src/dispatch/dispatcher.js";
import { POLICY_ID, policyTransport } from "#src/dispatch/policy.js";
import type { DispatchResult } from "#src/dispatch/result.js";
import type { Telemetry } from "#src/dispatch/telemetry.js";
import type { OperatorOptions } from "#src/messages/operator.js";
import type { MessagePlugin } from "#src/messages/plugin.js";
import { RecordedRuns } from "#src/messages/recorded-runs.js";
import { MessagePlugins } from "#src/messages/registry.js";
import { digest } from "#src/payload/digest.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import type { Payload } from "#src/payload/payload.js";
import { createRedactor } from "#src/payload/redaction.js";
import { recover } from "#src/replay/recover.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { ulid } from "#src/store/ulid.js";
import { settings } from "./configs.js";
import { intoMemory, type LedgerRows, rowsOf } from "./ledgers.js";
import { only } from "./only-chain.js";
import { settled, VirtualClock } from "./virtual-clock.js";

const WRITER = "01HF7YAT00WR1TERWR1TERWR1T";
const RECOVERER = "01HF7YAT00REC0VERREC0VERRE";
const CONFIG = '{"files":["agent.hcl"],"hooks":[],"settings":{"token":{"env":"GUARD_TOKEN"}}}';
const TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

export type Answering = ChainAnswer | ((payload: Payload) => ChainAnswer | Promise<ChainAnswer>);

export type Part = {
  readonly mode: Exclude<Mode, "policy" | "handler">;
  readonly id: string;
  /** ms, 1 000 by default */
  readonly timeoutMs?: number;
  readonly subscriptionId?: string;
  readonly skip?: string;
  readonly shadow?: true;
  readonly producer?: Partial<Producer>;
  /** ms until it answers; by default it does in the same turn. */
  readonly afterMs?: number;
  /** Nothing: it never answers. */
  readonly does?: Answering;
};

export type Scene = {
  readonly point: HookPoint;
  readonly chain: readonly Part[];
  readonly policy?: readonly PolicyRule[];
  readonly settings?: Partial<Settings>;
  readonly secrets?: readonly string[];
  readonly traced?: boolean;
};

type MessageSettings = OperatorOptions & { readonly redact?: readonly string[] };

/** Where one scenario is acted. Its name makes its ids, so that no two scenarios share any. */
export class GoldenStage {
  readonly clock = new VirtualClock();
  store: EventStore = openMemoryStore({ writer: WRITER });
  readonly #random: Uint8Array;
  #ids = 0;

  constructor(name: string) {
    this.#random = createHash("sha256").update(name).digest().subarray(0, 10);
  }

  /** A whole dispatch, all its observers included. */
  async dispatch(scene: Scene, input: HookPayloadInput, options: DispatchOptions = {}): Promise<void> {
    const { result } = await this.begin(scene, input, options);
    await this.clock.run();
    await result;
    await settled();
  }

  /** Calls whoever is called in the first turn; no time passes. */
  async begin(
    scene: Scene,
    input: HookPayloadInput,
    options: DispatchOptions = {},
  ): Promise<{ readonly result: Promise<DispatchResult> }> {
    const chain = this.#chain(scene);
    const bytes = new TextEncoder().encode(CONFIG);
    const dispatcher = new Dispatcher({
      settings: settings(scene.settings),
      configBlob: { digest: digest("config", bytes), bytes },
      chains: only(chain),
      redactor: createRedactor({ patterns: scene.settings?.redact ?? [], secrets: scene.secrets ?? [] }),
      store: this.store,
      storeTimeoutMs: 30_000,
      recovered: null,
      clock: this.clock,
      telemetry: scene.traced === true ? TRACED : UNTRACED,
      onHookError: () => {},
      newId: () => this.#newId(),
      log: () => {},
    });
    const result = dispatcher.dispatch(input, options);
    await settled();
    return { result };
  }

  /** Runs of message hooks with these plugins; their failures are logged nowhere. */
  runs(plugins: readonly MessagePlugin[], { redact = [], ...hooks }: MessageSettings = {}): RecordedRuns {
    const loaded = new MessagePlugins();
    for (const plugin of plugins) loaded.load(plugin);
    return new RecordedRuns({
      plugins: loaded,
      store: this.store,
      redactor: createRedactor({ patterns: redact, secrets: [] }),
      hooks,
      clock: this.clock,
      telemetry: UNTRACED,
      newId: () => this.#newId(),
    });
  }

  /** The process dies here; another one recovers what it left. */
  async dieAndRecover(): Promise<void> {
    await this.#recover(await rowsOf(this.store));
  }

  /** The same, before it could record its last event, which is of this type. */
  async dieBefore(last: string): Promise<void> {
    const rows = await rowsOf(this.store);
    await this.#recover({ ...rows, events: rows.events.filter(({ type }) => type !== last) });
  }

  async #recover(rows: LedgerRows): Promise<void> {
    const store = await intoMemory(rows, RECOVERER);
    const recovered = recover(store, { dryRun: false, now: this.clock.wall() + 60_000 });
    while (!(await recovered.next()).done);
    this.store = store;
  }

  rows(): Promise<LedgerRows> {
    return rowsOf(this.store);
  }

  #newId(): string {
    return ulid(this.clock.wall(), this.#random.with(9, this.#ids++));
  }

  #chain({ point, chain, policy }: Scene) {
    const first = policy === undefined ? [] : [policyLink(policy)];
    const links = [...first, ...chain.map((part, place) => this.#link(part, first.length + place))];
    const { vetoBearing } = HOOK_POINTS[point];
    return { point, vetoBearing, links, subscribers: links.map(({ subscriber }) => subscriber) };
  }

  #link(part: Part, index: number): Link {
    const { mode, id, timeoutMs = 1000, subscriptionId, skip, shadow, producer, afterMs = 0, does } = part;
    const provider = id.split(":")[0] ?? id;
    const subscriber: Subscriber = {
      index,
      id,
      provider,
      mode,
      timeoutMs,
      ...(subscriptionId === undefined ? {} : { subscriptionId }),
      ...(skip === undefined ? {} : { skip }),
      ...(shadow === undefined ? {} : { shadow }),
      producer: { name: provider, source: "host", ...producer },
    };
    const answer = async (payload: Payload): Promise<ChainAnswer> => {
      if (does === undefined) return new Promise(() => {});
      if (afterMs > 0) await new Promise<void>((resolve) => this.clock.timer(afterMs, resolve));
      return typeof does === "function" ? does(payload) : does;
    };
    return { subscriber, recording: "barrier", transport: { invoke: ({ payload }) => answer(payload) } };
  }
}

function policyLink(rules: readonly PolicyRule[]): Link {
  return {
    subscriber: {
      index: 0,
      id: POLICY_ID,
      provider: "kernel",
      mode: "policy",
      timeoutMs: 5000,
      producer: { name: "kernel", source: "kernel" },
    },
    transport: policyTransport(rules),
    recording: "barrier",
  };
}

const UNTRACED = telemetryWith(undefined);
const TRACED = telemetryWith(TRACEPARENT);

function telemetryWith(traceparent: string | undefined): Telemetry {
  const subscriber = () => ({ traceparent, extra() {}, end() {} });
  return {
    dispatch: () => ({ traceparent, subscriber, end() {} }),
    storeFailed() {},
    backlogRefused() {},
    watchBacklog: () => () => {},
  };
}

export const SOME_DIGEST: Digest = `sha256:${"5".repeat(64)}`;
