/** The host's dispatcher of replies, as a takeover sees it: one lane, so that the order holds across kinds. */

import type { HostReplyPayload, ReplyKind } from "./facts.js";
import type { ReplyCounts } from "./types.js";

/** What became of the replies of one kind. */
export type LaneCounts = {
  readonly delivered: number;
  readonly deliveredNotVisible: number;
  readonly cancelled: number;
  readonly failedBeforeSend: number;
  readonly failedAfterSend: number;
};

export type DispatchReceipt = { readonly [kind in ReplyKind]: LaneCounts } & {
  readonly anyVisibleDelivered: boolean;
};

export interface ReplyDispatcher {
  /** Each is true when the reply was admitted after normalisation, and false for one that is empty or silent. */
  sendToolResult(payload: HostReplyPayload): boolean;
  sendBlockReply(payload: HostReplyPayload): boolean;
  sendFinalReply(payload: HostReplyPayload): boolean;
  /** Admissions, also of what is cancelled later. */
  getQueuedCounts(): ReplyCounts;
  /** Resolves when the lane is empty. Never rejects: one failure does not stop the lane. */
  waitForIdle(): Promise<DispatchReceipt>;
}
