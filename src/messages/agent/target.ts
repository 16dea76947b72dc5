/** What kind of dispatch a message comes to. */

import type { DispatchKind } from "../types.js";

/** A session that a message may go to, as far as it is known. */
export type SessionTarget = {
  readonly sessionKey?: string;
  /** What is stored of the session's ACP backend; null or absent: nothing. */
  readonly acp?: object | null;
};

/** A resolved target: where a conversation is bound, its binding decides and not the session it would go to otherwise. */
export type DispatchTarget = SessionTarget & {
  /** `kind`: what the conversation was bound to, also where that session is not to be found any more. */
  readonly binding?: (SessionTarget & { readonly kind?: DispatchKind }) | null;
};

/** Undefined where no target is resolved. */
export function dispatchKindOf(target: DispatchTarget | null): DispatchKind | undefined {
  if (target === null) return undefined;
  const binding = target.binding ?? null;
  const { sessionKey, acp } = binding ?? target;
  const isAcp = binding?.kind === "acp" || (acp ?? null) !== null || isAcpSessionKey(sessionKey ?? "");
  return isAcp ? "acp" : "agent";
}

/** `acp:…`, or `agent:<agent id>:acp:…`. */
const ACP_SESSION_KEY = /^\s*(?:agent:[^:]+:)?acp:/i;

export function isAcpSessionKey(sessionKey: string): boolean {
  return ACP_SESSION_KEY.test(sessionKey);
}
