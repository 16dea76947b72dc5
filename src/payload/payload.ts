/** A HookPayload in canonical form, with what is derived from it computed once, on demand. */
import type { HookPoint } from "../core/points.js";

export interface Payload {
  readonly point: HookPoint;
  /** Canonical encoding of the whole HookPayload message. Never modified by anybody. */
  readonly bytes: Uint8Array;
  /** The point's own message as subscribers in this process see it: deep-frozen, decoded once. */
  readonly view: object;
}
