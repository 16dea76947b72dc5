/** Dispatchers with scripted subscribers, on a clock that the test owns; and a reading of what they recorded. */
import type { Recording, Settings } from "#src/config/types.js";
import type { DispatchEvent, Mode, Producer, Subscriber } from "#src/core/events.js";
import { HOOK_POINTS, type HookPoint } from "#src/core/points.js";
import type { PolicyRule } from "#src/core/policy.js";
import type { HookErrorRecord, Verdict } from "#src/core/result.js";
import type { ChainAnswer, FrozenChain, Link } from "#src/dispatch/chain.js";
import { Dispatcher, type DispatcherParts, type DispatchOptions } from "#src/dispatch/dispatcher.js";
import { POLICY_ID, policyTransport } from "#src/dispatch/policy.js";
import type { DispatchResult } from "#src/dispatch/result.js";
import { telemetry } from "#src/dispatch/telemetry.js";
import { digest } from "#src/payload/digest.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import type { Payload } from "#src/payload/payload.js";
import { createRedactor } from "#src/payload/redaction.js";
import { replayStream } from "#src/replay/replay.js";
import { type Divergence, Verifier } from "#src/replay/verify.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { Blob, EventStore, RecordedEvent } from "#src/store/port.js";
import { decodeEvent } from "#src/store/record/decode.js";
import { metadataOf, type ReadMetadata } from "#src/store/record/metadata.js";
import { ulid } from "#src/store/ulid.js";
import type { LogSink } from "#src/subscribers/log.js";
import type { Invocation } from "#src/subscribers/port.js";
import { settings } from "./configs.js";
import { only } from "./only-chain.js";
import { INPUTS } from "./subscriber-calls.js";
import { settled, VirtualClock } from "./virtual-clock.js";

export type Answering = ChainAnswer | ((call: Invocation) => ChainAnswer | Promise<ChainAnswer>);

/** One subscriber of a scripted chain. */
export type Part = {
  readonly mode: Exclude<Mode, "policy" | "handler">;
  /** Default: the mode, with its place when it stands behind the first. */
  readonly id?: string;
  /** ms, 1 000 by default. */
  readonly timeoutMs?: number;
  readonly recording?: Recording;
  readonly shadow?: true;
  readonly skip?: string;
  readonly producer?: Producer;
  readonly does: Answering;
};

export type StageOptions = {
  /** pre-tool-call by default. */
  readonly point?: HookPoint;
  readonly chain?: readonly Part[];
  /** Pins the kernel's policy engine, or a stand-in for it, before the chain. */
  readonly policy?: readonly PolicyRule[] | Answering;
  readonly settings?: Partial<Settings>;
  readonly store?: EventStore;
  readonly clock?: VirtualClock;
  readonly secrets?: readonly string[];
  readonly parts?: Partial<DispatcherParts>;
};

type Told = HookErrorRecord & { readonly dispatchId: string };
type LogLine = Parameters<LogSink>[0];

/** A dispatcher and everything around it that a test looks at. */
export class Rig {
  readonly dispatcher: Dispatcher;
  readonly point: HookPoint;
  readonly store: EventStore;
  readonly clock: VirtualClock;
  readonly configBlob: Blob;
  readonly chain: FrozenChain;
  readonly hookErrors: Told[] = [];
  readonly lines: LogLine[] = [];
  /** Every call that reached a subscriber, in order. */
  readonly calls: { readonly id: string; readonly call: Invocation }[] = [];
  #ids = 0;

  constructor(options: StageOptions = {}) {
    this.point = options.point ?? "pre-tool-call";
    this.store = options.store ?? openMemoryStore();
    this.clock = options.clock ?? new VirtualClock();
    this.chain = this.#chain(options);
    const redact = options.settings?.redact ?? [];
    const bytes = new TextEncoder().encode('{"config":"of a test"}');
    this.configBlob = options.parts?.configBlob ?? { digest: digest("config", bytes), bytes };
    this.dispatcher = new Dispatcher({
      settings: settings(options.settings),
      configBlob: this.configBlob,
      chains: only(this.chain),
      redactor: createRedactor({ patterns: redact, secrets: options.secrets ?? [] }),
      store: this.store,
      storeTimeoutMs: 30_000,
      recovered: null,
      clock: this.clock,
      telemetry: telemetry(),
      onHookError: (error) => this.hookErrors.push(error),
      newId: () => ulid(1_700_000_000_000 + this.#ids++, new Uint8Array(10)),
      log: (line) => this.lines.push(line),
      ...options.parts,
    });
  }

  /** Begins a dispatch. Time stands still. */
  begin(options: DispatchOptions = {}, input?: HookPayloadInput | Payload | Uint8Array): Promise<DispatchResult> {
    return this.dispatcher.dispatch(input ?? INPUTS[this.point], options);
  }

  /** A whole dispatch, all its observers included. */
  async dispatch(options: DispatchOptions = {}, input?: HookPayloadInput | Payload): Promise<DispatchResult> {
    const result = this.begin(options, input);
    // Looked at below; meanwhile nobody may take it for unhandled.
    result.catch(() => {});
    await this.clock.run();
    return result;
  }

  recorded(dispatchId: string): Promise<Recorded> {
    return recordedIn(this.store, dispatchId);
  }

  async isRecorded(dispatchId: string): Promise<boolean> {
    return (await this.store.readStream(`hookdispatch-${dispatchId}`)) !== null;
  }

  #chain({ chain = [], policy }: StageOptions): FrozenChain {
    const first = policy === undefined ? [] : [policyLink(policy)];
    const links = [...first, ...chain.map((part, place) => this.#link(part, first.length + place))];
    const { vetoBearing } = HOOK_POINTS[this.point];
    return { point: this.point, vetoBearing, links, subscribers: links.map(({ subscriber }) => subscriber) };
  }

  #link(part: Part, index: number): Link {
    const id = part.id ?? (index === 0 ? part.mode : `${part.mode}-${index}`);
    return {
      subscriber: {
        index,
        id,
        provider: id,
        mode: part.mode,
        timeoutMs: part.timeoutMs ?? 1000,
        ...(part.skip === undefined ? {} : { skip: part.skip }),
        ...(part.shadow === undefined ? {} : { shadow: part.shadow }),
        producer: part.producer ?? { name: id, source: "host" },
      },
      recording: part.recording ?? "barrier",
      transport: {
        invoke: async (call) => {
          this.calls.push({ id, call });
          return typeof part.does === "function" ? part.does(call) : part.does;
        },
      },
    };
  }
}

export type Recorded = {
  readonly raw: readonly RecordedEvent[];
  readonly events: readonly DispatchEvent[];
  readonly metadata: readonly ReadMetadata[];
  /** The log in a few words an event. */
  readonly told: readonly string[];
  readonly verdict: Verdict;
  readonly diverged: Divergence | null;
};

export async function recordedIn(store: EventStore, dispatchId: string): Promise<Recorded> {
  const stream = await store.readStream(`hookdispatch-${dispatchId}`);
  if (stream === null) throw new Error(`nothing is recorded of ${dispatchId}`);
  const replayed = replayStream(stream);
  if (!("verdict" in replayed)) throw new Error(`it does not replay: ${JSON.stringify(replayed)}`);
  const { diverged } = await new Verifier(store).verify(stream);
  return {
    raw: stream.events,
    events: stream.events.map(eventOf),
    metadata: stream.events.map((event) => metadataOf(event)!),
    told: stream.events.map((event) => tell(eventOf(event))),
    verdict: replayed.verdict,
    diverged,
  };
}

function policyLink(policy: readonly PolicyRule[] | Answering): Link {
  const subscriber: Subscriber = {
    index: 0,
    id: POLICY_ID,
    provider: "kernel",
    mode: "policy",
    timeoutMs: 1000,
    producer: { name: "kernel", source: "kernel" },
  };
  if (isRules(policy)) return { subscriber, transport: policyTransport(policy), recording: "barrier" };
  const invoke = async (call: Invocation) => (typeof policy === "function" ? policy(call) : policy);
  return { subscriber, transport: { invoke }, recording: "barrier" };
}

function isRules(policy: readonly PolicyRule[] | Answering): policy is readonly PolicyRule[] {
  return Array.isArray(policy);
}

function eventOf(recorded: RecordedEvent): DispatchEvent {
  const decoded = decodeEvent(recorded.type, recorded.data);
  if (!("event" in decoded)) throw new Error(decoded.found);
  return decoded.event;
}

function tell(event: DispatchEvent): string {
  switch (event.type) {
    case "started":
      return "started";
    case "subscriber-invoked":
      return `invoked ${event.index}`;
    case "outcome":
      return `${event.class}${"error" in event ? ` ${event.error.category}` : ""} ${event.index}`;
    case "timeout":
      return `timeout ${event.index} after ${event.budgetMs}`;
    case "aborted":
      return `aborted ${event.cause}${event.inFlight === undefined ? "" : ` with ${event.inFlight.join(",")}`}`;
    case "decided":
      return `decided ${event.decision} by ${event.decidedBy}`;
  }
}

export const ack: ChainAnswer = { class: "ack" };
export const allow: ChainAnswer = { class: "allow" };
export const deny: ChainAnswer = { class: "deny", reason: "not today" };
export const broken: ChainAnswer = { class: "failed", error: { category: "UNKNOWN", message: "it broke" } };
export const keep = ({ payload }: Invocation): ChainAnswer => ({ class: "transformed", payload });

export function never(): Promise<ChainAnswer> {
  return new Promise(() => {});
}

/** Answers once so many ms have passed. */
export function delayed(clock: VirtualClock, ms: number, answer: Answering): Answering {
  return (call) =>
    new Promise((resolve) => {
      clock.timer(ms, () => resolve(typeof answer === "function" ? answer(call) : answer));
    });
}

/** Something that a test decides when to give. */
export class Later<T> {
  readonly promise: Promise<T>;
  resolve: (value: T) => void = () => {};
  constructor() {
    this.promise = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }
}

/** Has this settled by now, without any time passing? */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  const mark = () => {
    done = true;
  };
  promise.then(mark, mark);
  await settled();
  return done;
}
