/** A subscriber on the other side of a gRPC connection, which can be asked more than hooks. */

import type { Reply } from "./channel.js";
import type { PeerDescription } from "./plugin-info.js";
import type { SubscriberTransport } from "./port.js";

export interface PeerTransport extends SubscriberTransport {
  /** What it says of itself, or null when it is not there or does not say. Throws HL_SUBSCRIBER_LOAD on nonsense. */
  describe(timeoutMs: number): Promise<PeerDescription | null | "absent">;
  /** Sends bytes in place of a request, whatever they are. Never rejects. */
  exchange(request: Uint8Array, timeoutMs: number): Promise<Reply>;
}

export function isPeer(transport: SubscriberTransport): transport is PeerTransport {
  return "describe" in transport && "exchange" in transport;
}
