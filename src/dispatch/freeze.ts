/** From configuration and loaded providers to the frozen chain of each point. */
import { resolveChain } from "../config/resolve.js";
import type { Config } from "../config/types.js";
import type { Producer, Subscriber } from "../core/events.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import { canonicalJson } from "../payload/canonical-json.js";
import type { Redactor } from "../payload/redaction.js";
import type { LoadedProviders } from "../subscribers/load.js";
import type { FrozenChain, Link } from "./chain.js";
import { POLICY_ID, policyTransport } from "./policy.js";
import { MAX_DATA_BYTES } from "./recorder.js";

/** Policy stands before every plugin at the points where the kernel's own engine runs. */
const POLICY_POINTS: ReadonlySet<HookPoint> = new Set(["plan-ready"]);

/** Throws HL_LIMIT_SUBSCRIBERS when a chain is too long to be recorded. */
export function freezeChains(
  config: Config,
  providers: LoadedProviders,
  redactor: Redactor,
): ReadonlyMap<HookPoint, FrozenChain> {
  const chains = new Map<HookPoint, FrozenChain>();
  for (const point of Object.keys(HOOK_POINTS).filter(isHookPoint))
    chains.set(point, freezeChain(config, providers, redactor, point));
  return chains;
}

function freezeChain(config: Config, providers: LoadedProviders, redactor: Redactor, point: HookPoint): FrozenChain {
  const first = POLICY_POINTS.has(point) ? [policyLink(config)] : [];
  const links = [
    ...first,
    ...resolveChain(config, point).map((hook, place): Link => {
      const loaded = providers.byName.get(hook.provider);
      if (loaded === undefined) throw new HookledgerError("HL_INTERNAL", `provider "${hook.provider}" was not loaded`);
      const subscriber: Subscriber = {
        index: first.length + place,
        id: hook.subscriberId,
        provider: hook.provider,
        mode: hook.mode,
        timeoutMs: hook.timeoutMs,
        ...(hook.id === undefined ? {} : { subscriptionId: hook.id }),
        ...(hook.shadow ? { shadow: true as const } : {}),
        producer: recordedProducer(loaded.producer, redactor),
      };
      return { subscriber, transport: loaded.transport, recording: hook.recording };
    }),
  ];
  const subscribers = links.map(({ subscriber }) => subscriber);
  requireRecordable(point, subscribers);
  return { point, vetoBearing: HOOK_POINTS[point].vetoBearing, links, subscribers };
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
