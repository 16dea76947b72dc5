/** Who is checked. */

import type { Reply } from "../subscribers/channel.js";
import type { SubscriberTransport } from "../subscribers/port.js";
import type { Stand } from "./ask.js";

export interface Subject {
  /** Where it may be asked: what it says that it serves, or everywhere if it does not say. */
  readonly stands: readonly Stand[];
  /** Does it say so handler by handler, so that nothing is to be tried? */
  readonly isExplicit: boolean;
  /** Who answers now. One that ended is started again. */
  reach(): Promise<SubscriberTransport>;
  /** Sends bytes in place of a request; never rejects. Null: it takes none. */
  readonly exchange: ((request: Uint8Array, timeoutMs: number) => Promise<Reply>) | null;
  /** Idempotent. */
  close(): Promise<void>;
}
