/** The end of a plugin that is no longer needed: asked, then told, then killed. What counts is whether it is still there. */

import type { PluginProcess } from "./process.js";
import { type LifeClock, within } from "./time.js";

export type StopOptions = {
  readonly clock: LifeClock;
  /** ms for each step: an answer to Shutdown, the end after it, the end after SIGTERM */
  readonly graceMs: number;
};

export const GRACE_MS = 2_000;

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
  plugin.terminate();
  if (await ended(graceMs)) return plugin.gone;
  return killProcess(plugin);
}

/** At once. Resolves once nothing is left. Never rejects. */
export async function killProcess(plugin: PluginProcess): Promise<void> {
  plugin.hold(true);
  if (await plugin.kill()) return plugin.gone;
  plugin.hold(false);
}
