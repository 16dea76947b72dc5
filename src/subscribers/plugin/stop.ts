/** The end of a plugin that is no longer needed: asked, then told, then killed. What counts is whether it is still there. */

import type { PluginProcess } from "./process.js";
import { type LifeClock, within } from "./time.js";

export type StopOptions = {
  readonly clock: LifeClock;
  /** ms for each step: an answer to Shutdown, the end after it, the end after SIGTERM */
  readonly graceMs: number;
};

export const GRACE_MS = 2_000;

/** ms for the system to end what was killed; only a process that hangs in a driver takes longer */
const KILL_MS = 5_000;

/** `shutDown` asks for the end, and says whether it may now be waited for. Resolves once nothing is left. Never rejects. */
export async function stopProcess(
  plugin: PluginProcess,
  shutDown: () => Promise<boolean>,
  { clock, graceMs }: StopOptions,
): Promise<void> {
  plugin.hold(true);
  const ended = (ms: number) => within(clock, ms, plugin.ended);
  const agreed = plugin.end === null && (await Promise.race([shutDown(), plugin.ended.then(() => true)]));
  if (plugin.end !== null || (agreed && (await ended(graceMs)))) return plugin.gone;
  plugin.signal("SIGTERM");
  if (await ended(graceMs)) return plugin.gone;
  return killProcess(plugin, clock);
}

/** At once. Resolves once nothing is left. Never rejects. */
export async function killProcess(plugin: PluginProcess, clock: LifeClock): Promise<void> {
  plugin.hold(true);
  plugin.signal("SIGKILL");
  if (await within(clock, KILL_MS, plugin.ended)) return plugin.gone;
  plugin.hold(false);
}
