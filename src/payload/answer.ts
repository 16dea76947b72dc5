import type { HookError } from "../core/events.js";
import type { Payload } from "./payload.js";

/**
 * What a subscriber answered, admitted: shape, variant and mutable fields are already judged. Its texts are as they were said: they
 * are redacted, escaped and cut where they are recorded.
 */
export type Answer = (
  | { readonly class: "ack" }
  | { readonly class: "transformed"; readonly payload: Payload }
  | { readonly class: "allow" }
  | { readonly class: "deny"; readonly reason?: string }
  | { readonly class: "failed"; readonly error: HookError }
  | { readonly class: "invalid"; readonly error: HookError }
) & { readonly warnings?: readonly string[] };
