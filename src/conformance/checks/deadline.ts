import { type Check, EVERY_MODE, GRACE_MS } from "../check.js";
import { payloadsOf } from "../payloads.js";

/** ms */
const DEADLINES = [1, 5, 25] as const;

export const deadline: Check = {
  name: "deadline",
  why: "Nobody waits for a call whose deadline is past; a subscriber that works on all the same uses up what the next call needs.",
  rule: `A call ends at its deadline (in a module ctx.signal aborts), and within ${GRACE_MS} ms in any case; the next call is answered.`,
  takes: "payload",
  modes: EVERY_MODE,
  share: 0.1,
  arbitrary: ({ point }) => payloadsOf(point, "full"),
  async judge(bench, payload) {
    if ((await bench.fault(payload)) !== null) return null;
    for (const timeoutMs of DEADLINES) {
      const heard = await bench.ask(payload, { timeoutMs });
      if (heard.kind === "silence")
        return `a call with a deadline of ${timeoutMs} ms had not ended ${heard.afterMs} ms after it`;
    }
    const after = await bench.fault(payload);
    return after === null ? null : `after calls that met their deadline, the next one failed: ${after}`;
  },
};
