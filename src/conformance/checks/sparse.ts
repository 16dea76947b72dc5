import { type Check, EVERY_MODE } from "../check.js";
import { payloadsOf } from "../payloads.js";

export const sparse: Check = {
  name: "sparse",
  why: "A message, list or text that is empty or missing is an ordinary payload: who fails on it denies, or ends the chain, without a reason.",
  rule: "In proto3 every field may be missing, and a oneof may have no member set.",
  takes: "payload",
  modes: EVERY_MODE,
  share: 1,
  arbitrary: ({ point }) => payloadsOf(point, "sparse"),
  judge: (bench, payload) => bench.fault(payload),
};
