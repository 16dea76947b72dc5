import { changedImmutable } from "../../payload/admission.js";
import { answerFault, type Heard } from "../ask.js";
import { hasUnknown, lostUnknown, withoutUnknown } from "../bare.js";
import { type Check, EVERY_MODE } from "../check.js";
import { payloadsOf } from "../payloads.js";

export const unknownFields: Check = {
  name: "unknown-fields",
  why: "A newer kernel sends fields that this subscriber does not know; who drops them changes what it was only to pass on.",
  rule: "Fields that a subscriber does not know are no reason to fail, and come back with every message that it did not change.",
  takes: "payload",
  modes: EVERY_MODE,
  share: 1,
  arbitrary: ({ point }) => payloadsOf(point, "unknown").filter(hasUnknown),
  async judge(bench, payload) {
    const heard = await bench.ask(payload);
    const fault = faultOf(heard, bench.timeoutMs);
    if (fault !== null) {
      // Who fails without them, too, does not fail for them.
      const bare = faultOf(await bench.ask(withoutUnknown(payload)), bench.timeoutMs);
      return bare === null ? `with fields that it does not know, ${fault}` : null;
    }
    if (heard.kind !== "answer" || heard.answer.class !== "transformed") return null;
    const lost = lostUnknown(payload, heard.answer.payload);
    return lost === undefined ? null : `a ${lost} came back as it was, but without the fields that it does not know`;
  },
};

function faultOf(heard: Heard, timeoutMs: number): string | null {
  const changed = heard.kind === "answer" ? changedImmutable(heard.answer) : undefined;
  return changed === undefined ? answerFault(heard, { timeoutMs }) : `it changed ${changed}`;
}
