/** What a handler is given of its turn is good for its own call, and no longer. */

import type { Invocation } from "../../subscribers/port.js";
import { CallAdoption } from "./custody.js";

export type HookCall = { readonly context: object; end(): void };

/** `context`: the handler's own copy. */
export function hookCall(context: object, onAbort: Invocation["onAbort"]): HookCall {
  const handle: unknown = Reflect.get(context, "turnAdoption");
  if (!(handle instanceof CallAdoption)) return { context, end() {} };
  const turnAdoption = handle.ofCall();
  const end = (): void => turnAdoption.end();
  onAbort(end);
  return { context: { ...context, turnAdoption }, end };
}
