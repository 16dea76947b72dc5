/** From configuration and loaded providers to the frozen chain of each point. */
import { type ResolvedHook, resolveChain } from "../config/resolve.js";
import type { Config } from "../config/types.js";
import type { Producer, Subscriber } from "../core/events.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import { canonicalJson } from "../payload/canonical-json.js";
import type { Redactor } from "../payload/redaction.js";
import type { LoadedProviders } from "../subscribers/load.js";
import type { Reach, Startable } from "../subscribers/port.js";
import type { Chains, FrozenChain, Link } from "./chain.js";
import { POLICY_ID, policyTransport } from "./policy.js";
import { MAX_DATA_BYTES } from "./recorder.js";

/** Policy stands before every plugin at the points where the kernel's own engine runs. */
const POLICY_POINTS: ReadonlySet<HookPoint> = new Set(["plan-ready"]);

/** Throws HL_LIMIT_SUBSCRIBERS when a chain is too long to be recorded. */
export function freezeChains(config: Config, providers: LoadedProviders, redactor: Redactor): Chains {
  const sketches = new Map<HookPoint, Sketch>();
  for (const point of Object.keys(HOOK_POINTS).filter(isHookPoint))
    sketches.set(point, new Sketch(config, providers, redactor, point));
  const sketchOf = (point: HookPoint): Sketch => {
    const sketch = sketches.get(point);
    if (sketch === undefined) throw new HookledgerError("HL_INTERNAL", `no chain for ${point}`);
    return sketch;
  };
  return {
    at: (point) => sketchOf(point).chain(),
    asItStands: (point) => sketchOf(point).asItStands(),
  };
}

type Place = { readonly hook: ResolvedHook; readonly provider: Startable };
type Standing = { readonly hook: ResolvedHook; readonly reach: Reach };

/** Who stands at a point, whoever answers for them. It is frozen anew only when somebody else does. */
class Sketch {
  readonly #config: Config;
  readonly #redactor: Redactor;
  readonly #point: HookPoint;
  readonly #places: readonly Place[];
  #frozen: { readonly chain: FrozenChain; readonly standings: readonly Standing[] };

  constructor(config: Config, providers: LoadedProviders, redactor: Redactor, point: HookPoint) {
    this.#config = config;
    this.#redactor = redactor;
    this.#point = point;
    this.#places = resolveChain(config, point).map((hook): Place => {
      const provider = providers.byName.get(hook.provider);
      if (provider === undefined)
        throw new HookledgerError("HL_INTERNAL", `provider "${hook.provider}" was not loaded`);
      return { hook, provider };
    });
    const standings = this.#places.map(asItStands);
    this.#frozen = { chain: this.#freeze(standings), standings };
  }

  chain(): FrozenChain | Promise<FrozenChain> {
    const due = this.#places.filter(({ provider }) => provider.due);
    if (due.length === 0) return this.asItStands();
    if (due.some(isAwaited)) return this.#started();
    for (const { provider } of due) void provider.ready();
    return this.asItStands();
  }

  asItStands(): FrozenChain {
    return this.#chainOf(this.#places.map(asItStands));
  }

  async #started(): Promise<FrozenChain> {
    return this.#chainOf(
      await Promise.all(
        this.#places.map(async (place) => {
          const ready = place.provider.ready();
          return isAwaited(place) ? { hook: place.hook, reach: await ready } : asItStands(place);
        }),
      ),
    );
  }

  #chainOf(standings: readonly Standing[]): FrozenChain {
    const same = standings.every(({ reach }, place) => reach === this.#frozen.standings[place]?.reach);
    if (!same) this.#frozen = { chain: this.#freeze(standings), standings };
    return this.#frozen.chain;
  }

  #freeze(standings: readonly Standing[]): FrozenChain {
    const point = this.#point;
    const first = POLICY_POINTS.has(point) ? [policyLink(this.#config)] : [];
    const links = [
      ...first,
      ...standings.map(({ hook, reach }, place): Link => {
        const subscriber: Subscriber = {
          index: first.length + place,
          id: hook.subscriberId,
          provider: hook.provider,
          mode: hook.mode,
          timeoutMs: hook.timeoutMs,
          ...(hook.id === undefined ? {} : { subscriptionId: hook.id }),
          ...(hook.shadow ? { shadow: true as const } : {}),
          producer: recordedProducer(reach.producer, this.#redactor),
        };
        return { subscriber, transport: reach.transport, recording: hook.recording };
      }),
    ];
    const subscribers = links.map(({ subscriber }) => subscriber);
    requireRecordable(point, subscribers);
    return { point, vetoBearing: HOOK_POINTS[point].vetoBearing, links, subscribers };
  }
}

/**
 * Who has a say is waited for. Who has none is waited for once: a plugin that did not come up is started beside the dispatches, which go
 * on without it meanwhile.
 */
function isAwaited({ hook, provider }: Place): boolean {
  return (hook.mode !== "observe" && !hook.shadow) || !provider.failing;
}

function asItStands({ hook, provider }: Place): Standing {
  return { hook, reach: provider.now };
}

/** An address is the operator's, and a version what a peer says: either may hold what is to be redacted. */
function recordedProducer(producer: Producer, redactor: Redactor): Producer {
  const { source, version } = producer;
  return {
    ...producer,
    source: redactor.text(source),
    ...(version === undefined ? {} : { version: redactor.text(version) }),
  };
}

/** bytes that the rest of a start takes at most */
const START_BYTES = 4096;

/** A chain that no start could name would make every dispatch of its point fail. */
function requireRecordable(point: HookPoint, subscribers: readonly Subscriber[]): void {
  const size = Buffer.byteLength(canonicalJson(subscribers));
  const limit = MAX_DATA_BYTES - START_BYTES;
  if (size <= limit) return;
  throw new HookledgerError(
    "HL_LIMIT_SUBSCRIBERS",
    `the chain of ${point} takes ${size} bytes to record, over ${limit}`,
  );
}

function policyLink(config: Config): Link {
  const producer: Producer = { name: "kernel", source: "kernel" };
  return {
    subscriber: {
      index: 0,
      id: POLICY_ID,
      provider: "kernel",
      mode: "policy",
      timeoutMs: config.settings.defaultHookTimeoutMs,
      producer,
    },
    transport: policyTransport(config.policy),
    recording: "barrier",
  };
}
