import { changedImmutable } from "../../payload/admission.js";
import type { Check } from "../check.js";
import { payloadsOf } from "../payloads.js";

export const identity: Check = {
  name: "identity",
  why: "A transform that touches what it may not is refused, and the chain ends with a hook_error.",
  rule: "A transform changes the mutable fields of its point alone, `messages` at pre-model-call and nothing elsewhere; everything else comes back as it was.",
  takes: "payload",
  modes: ["transform"],
  share: 1,
  arbitrary: ({ point }) => payloadsOf(point, "full"),
  async judge(bench, payload) {
    const heard = await bench.ask(payload);
    const changed = heard.kind === "answer" ? changedImmutable(heard.answer) : undefined;
    return changed === undefined ? null : `it changed ${changed}, which no transform may change`;
  },
};
