import type { HookPoint } from "../core/points.js";
import type { Config, Hook, Recording } from "./types.js";

/** A subscription with everything that the settings add to it. */
export type ResolvedHook = Hook & {
  /** `<provider>`, or `<provider>:<hook id>`. */
  readonly subscriberId: string;
  /** ms. */
  readonly timeoutMs: number;
  readonly recording: Recording;
};

/** Who subscribes to a point, in textual order. The kernel's own policy, which stands before them at plan-ready, is not in it. */
export function resolveChain({ hooks, settings }: Config, point: HookPoint): readonly ResolvedHook[] {
  return hooks
    .filter((hook) => hook.point === point)
    .map((hook) => ({
      ...hook,
      subscriberId: hook.id === undefined ? hook.provider : `${hook.provider}:${hook.id}`,
      timeoutMs: hook.timeoutMs ?? settings.defaultHookTimeoutMs,
      recording: hook.recording ?? settings.recording,
    }));
}

export type ChainLink = {
  readonly subscriber: string;
  readonly provider: string;
  readonly mode: Hook["mode"] | "policy";
  /** ms. */
  readonly timeoutMs: number;
};

/** Everything that runs at a point, in order: at plan-ready the kernel's policy first, under the default timeout. */
export function chainOrder(config: Config, point: HookPoint): readonly ChainLink[] {
  const chain = resolveChain(config, point).map(({ subscriberId, provider, mode, timeoutMs }) => ({
    subscriber: subscriberId,
    provider,
    mode,
    timeoutMs,
  }));
  if (point !== "plan-ready") return chain;
  const timeoutMs = config.settings.defaultHookTimeoutMs;
  return [{ subscriber: "kernel:policy", provider: "kernel", mode: "policy", timeoutMs }, ...chain];
}

/** ms that a dispatch at this point may take at most: the sum of all effective timeouts, policy's included. */
export function chainBudget(config: Config, point: HookPoint): number {
  return chainOrder(config, point).reduce((sum, { timeoutMs }) => sum + timeoutMs, 0);
}
