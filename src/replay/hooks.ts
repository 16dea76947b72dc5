/** The hooks of both specifications, closed, and by which composition each is recorded. */
import { HOOK_POINTS } from "../core/points.js";
import { MESSAGE_HOOKS } from "../messages/hooks.js";

const COMPOSITIONS: ReadonlyMap<string, string> = new Map([
  ...Object.keys(HOOK_POINTS).map((point) => [point, "chain"] as const),
  ...Object.entries(MESSAGE_HOOKS).map(([hook, { composition }]) => [hook, composition] as const),
]);

/** The kernel's hook points, then the message hooks. */
export const HOOKS: readonly string[] = [...COMPOSITIONS.keys()];

/** Undefined for a hook that this version does not know. */
export function compositionAt(hook: string): string | undefined {
  return COMPOSITIONS.get(hook);
}
