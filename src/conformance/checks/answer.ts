import { type Check, EVERY_MODE } from "../check.js";
import { payloadsOf } from "../payloads.js";

export const answer: Check = {
  name: "answer",
  why: "A kernel counts everything but a well-formed answer in time as a failure: a veto denies, a transform ends the chain.",
  rule: "The answer to observe is an ObserveAck, to transform a TransformResult with the same payload variant, to veto ALLOW or DENY.",
  takes: "payload",
  modes: EVERY_MODE,
  share: 1,
  arbitrary: ({ point }) => payloadsOf(point, "full"),
  judge: (bench, payload) => bench.fault(payload),
};
