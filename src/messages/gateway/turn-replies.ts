/** The replies of one turn: a dispatcher that is shut when the turn is over, and what became of all that it admitted. */

import type { HostReplyPayload } from "../facts.js";
import type { ReplyDispatcherOptions } from "../outbound/dispatcher.js";
import { isVisible } from "../outbound/outcome.js";
import type { DispatchReceipt, ReplyDispatcher } from "../reply-dispatcher.js";
import type { SettledReply } from "./outcome.js";

type Listener = NonNullable<ReplyDispatcherOptions["onOutcome"]>;

export class TurnReplies {
  readonly dispatcher: ReplyDispatcher;
  readonly #settled: SettledReply[] = [];
  #shut: boolean;

  /** `listen` is told of each reply once it is settled. `mute`: admits nothing from the beginning. */
  constructor(open: (listen: Listener) => ReplyDispatcher, listen: Listener, mute: boolean) {
    this.#shut = mute;
    const inner = open((kind, outcome) => {
      this.#settled.push({ kind, outcome });
      listen(kind, outcome);
    });
    this.dispatcher = {
      sendToolResult: (payload) => !this.#shut && inner.sendToolResult(payload),
      sendBlockReply: (payload) => !this.#shut && inner.sendBlockReply(payload),
      sendFinalReply: (payload) => !this.#shut && inner.sendFinalReply(payload),
      getQueuedCounts: () => inner.getQueuedCounts(),
      waitForIdle: () => inner.waitForIdle(),
    };
  }

  get anyAdmitted(): boolean {
    const { tool, block, final } = this.dispatcher.getQueuedCounts();
    return tool + block + final > 0;
  }

  /** Admits nothing any more, and resolves when everything admitted is settled. Never rejects. */
  async settle(): Promise<{
    readonly receipt: DispatchReceipt;
    readonly replies: readonly SettledReply[];
    readonly delivered: readonly HostReplyPayload[];
  }> {
    this.#shut = true;
    const receipt = await this.dispatcher.waitForIdle();
    const replies = [...this.#settled];
    const delivered = replies.flatMap(({ outcome }) =>
      outcome.payload !== null && isVisible(outcome) ? [outcome.payload] : [],
    );
    return { receipt, replies, delivered };
  }
}
