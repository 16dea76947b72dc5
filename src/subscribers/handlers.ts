/** What a subscriber author writes: one shape for modules, host functions and the plugin SDK. */

import type { HookMode } from "../core/events.js";
import type { HOOK_POINTS, HookPoint } from "../core/points.js";
import type { Draft, PointMessages } from "../payload/messages.js";
import type { Logger } from "./log.js";

/** The body of the provider block, deep-frozen, with every `env()` replaced by its value. */
export type HookConfig = { readonly [key: string]: HookConfigValue };
type HookConfigValue =
  | null
  | boolean
  | number
  | string
  | readonly HookConfigValue[]
  | { readonly [key: string]: HookConfigValue };

export interface HookContext {
  readonly point: HookPoint;
  readonly mode: HookMode;
  /** The `id` of the hook block, where it has one. */
  readonly subscriptionId: string | undefined;
  readonly session: string | undefined;
  readonly turn: string | undefined;
  readonly config: HookConfig;
  /** Aborts at the deadline or when the caller cancels. */
  readonly signal: AbortSignal;
  /** ms until the deadline, never negative. */
  readonly remainingMs: () => number;
  readonly log: Logger;
}

/** Exactly one of these, with no other property. */
export type Verdict = "allow" | "deny" | { readonly decision: "allow" | "deny"; readonly reason?: string };

/** Every field of the point's message, so that none is dropped by mistake; what is in them may be written short. */
export type Transformed<P extends HookPoint> = {
  readonly [Field in keyof PointMessages[P]]: Draft<PointMessages[P][Field]>;
};

type Eventually<T> = T | PromiseLike<T>;
type VetoBearing = { [P in HookPoint]: (typeof HOOK_POINTS)[P]["vetoBearing"] extends true ? P : never }[HookPoint];

/** The payload is deep-frozen and shared: return a new object, `{ ...payload, messages }`. */
export type PointHandlers<P extends HookPoint> = {
  /** What it returns is ignored. */
  readonly observe?: (payload: PointMessages[P], ctx: HookContext) => unknown;
  readonly transform?: (payload: PointMessages[P], ctx: HookContext) => Eventually<Transformed<P>>;
} & (P extends VetoBearing
  ? { readonly veto?: (payload: PointMessages[P], ctx: HookContext) => Eventually<Verdict> }
  : { readonly veto?: never });

/**
 * Handlers by hook point and mode. Only own properties count, read once when they are loaded. A handler that throws or
 * rejects fails: it aborts the chain in `transform`, denies in `veto`, and is noted in `observe`.
 */
export type HookHandlers = { readonly [P in HookPoint]?: PointHandlers<P> };
