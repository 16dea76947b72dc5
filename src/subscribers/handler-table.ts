/** From what an author exports to the functions that hooks need: own properties only, read once. */

import type { Provider } from "../config/types.js";
import type { HookMode } from "../core/events.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import { thrownText } from "./fault.js";

/** What a hook block needs of its provider. */
export type NeededHook = { readonly point: HookPoint; readonly mode: HookMode };

type Handler = (payload: object, ctx: object) => unknown;
export type HandlerTable = ReadonlyMap<HookPoint, { readonly [mode in HookMode]?: Handler }>;

/** Throws HL_SUBSCRIBER_LOAD with the provider's place, naming the first handler that a hook needs and `exported` lacks. */
export function handlerTable(provider: Provider, needed: readonly NeededHook[], exported: unknown): HandlerTable {
  const table = new Map<HookPoint, { [mode in HookMode]?: Handler }>();
  for (const { point, mode } of needed) {
    const handlers = table.get(point) ?? {};
    table.set(point, handlers);
    handlers[mode] ??= handlerOf(provider, exported, point, mode);
  }
  return table;
}

/** Every handler that `exported` has where one may stand, whether a hook needs it or not. Throws HL_SUBSCRIBER_LOAD. */
export function handlersIn(provider: Provider, exported: unknown): readonly NeededHook[] {
  const points = Object.keys(HOOK_POINTS).filter(isHookPoint);
  try {
    return points.flatMap((point) => {
      const modes = HOOK_POINTS[point].vetoBearing ? MODES : MODES.filter((mode) => mode !== "veto");
      return modes.filter((mode) => isHandler(own(own(exported, point), mode))).map((mode) => ({ point, mode }));
    });
  } catch (error) {
    throw loadError(provider, `its handlers cannot be read: ${thrownText(error)}`, { cause: error });
  }
}

const MODES = ["observe", "transform", "veto"] as const satisfies readonly HookMode[];

function handlerOf(provider: Provider, exported: unknown, point: HookPoint, mode: HookMode): Handler {
  try {
    const owner = own(exported, point);
    const handler = own(owner, mode);
    if (isHandler(handler)) return (payload, ctx) => Reflect.apply(handler, owner, [payload, ctx]);
  } catch (error) {
    throw loadError(provider, `its handlers cannot be read: ${thrownText(error)}`, { cause: error });
  }
  throw loadError(provider, `it lacks the handler ${point}.${mode}`, { hint: hintFor(exported, point) });
}

function own(value: unknown, key: string): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

function isHandler(value: unknown): value is Handler {
  return typeof value === "function";
}

function hintFor(exported: unknown, point: HookPoint): string {
  try {
    const keys = typeof exported === "object" && exported !== null ? Object.keys(exported) : [];
    const stranger = keys.find((key) => !Object.hasOwn(HOOK_POINTS, key));
    if (stranger !== undefined && keys.length <= 100) return `"${stranger.slice(0, 60)}" is no hook point`;
  } catch {
    // Only a hint.
  }
  return `Handlers stand under their hook point: { "${point}": { … } }.`;
}

/** An error that refuses a provider at load. */
export function loadError(
  provider: Provider,
  what: string,
  details: { readonly hint?: string; readonly cause?: unknown } = {},
): HookledgerError {
  return new HookledgerError("HL_SUBSCRIBER_LOAD", `provider "${provider.name}" (${provider.sourceText}): ${what}`, {
    place: provider.place,
    ...details,
  });
}
