/** Durable admission of a chat: it takes the input off the caller's hands, and so must not pass by a takeover. */

import type { HookRuns } from "../runs.js";
import type { DispatchKind } from "../types.js";

/** No, where a `reply_dispatch` handler would be asked: the very check that a run makes. */
export function mayAdmitDurably(
  runs: Pick<HookRuns, "hasHooks">,
  context: { readonly dispatchKind?: DispatchKind },
): boolean {
  return !runs.hasHooks("reply_dispatch", context);
}
