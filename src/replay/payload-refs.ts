/** What events refer to, and as what. */
import type { DispatchEvent, Ref, RewriteSet } from "../core/events.js";

/** `result`: of a claim. The fields are those that a handler of a rewrite defined, each by itself. */
export type PayloadRole = "input" | "payload" | "result" | keyof RewriteSet;

export type NamedRef = { readonly role: PayloadRole; readonly ref: Ref };

const NONE: readonly NamedRef[] = [];

export function refsOf(event: DispatchEvent): readonly NamedRef[] {
  if (event.type === "started") return [{ role: "input", ref: event.input }];
  if (event.type !== "outcome") return NONE;
  const payload = "payload" in event && event.payload !== undefined ? [event.payload] : [];
  const role = event.class === "claimed" ? "result" : "payload";
  const set = "set" in event && event.set !== undefined ? setRefs(event.set) : NONE;
  return [...payload.map((ref) => ({ role, ref }) as const), ...set];
}

function setRefs(set: RewriteSet): readonly NamedRef[] {
  return (["content", "cancelReason", "metadata"] as const).flatMap((role) => {
    const ref = set[role];
    return ref === undefined ? [] : [{ role, ref }];
  });
}
