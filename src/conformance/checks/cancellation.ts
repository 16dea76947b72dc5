import { type Check, EVERY_MODE, GRACE_MS } from "../check.js";
import { payloadsOf } from "../payloads.js";

/** ms after the call */
const MOMENTS = [0, 2, 10] as const;

export const cancellation: Check = {
  name: "cancellation",
  why: "Who cancels wants to be rid of the work; a subscriber that works on all the same uses up what the next call needs.",
  rule: `A cancelled call ends within ${GRACE_MS} ms (in a module ctx.signal aborts), and the next call is answered.`,
  takes: "payload",
  modes: EVERY_MODE,
  share: 0.1,
  arbitrary: ({ point }) => payloadsOf(point, "full"),
  async judge(bench, payload) {
    if ((await bench.fault(payload)) !== null) return null;
    for (const cancelAfterMs of MOMENTS) {
      const heard = await bench.ask(payload, { cancelAfterMs });
      if (heard.kind === "silence")
        return `a call that was cancelled after ${cancelAfterMs} ms had not ended ${heard.afterMs} ms later`;
    }
    const after = await bench.fault(payload);
    return after === null ? null : `after calls that were cancelled, the next one failed: ${after}`;
  },
};
