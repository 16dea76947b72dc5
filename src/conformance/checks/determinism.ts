import { verdictOf } from "../ask.js";
import { type Check, EVERY_MODE } from "../check.js";
import { payloadsOf } from "../payloads.js";

export const determinism: Check = {
  name: "determinism",
  why: "Of a subscriber that answers the same question differently, nobody can say afterwards why something was allowed.",
  rule: "The identical payload gets the same verdict, and the same payload back.",
  takes: "payload",
  modes: EVERY_MODE,
  share: 1,
  arbitrary: ({ point }) => payloadsOf(point, "full"),
  async judge(bench, payload) {
    const first = verdictOf(await bench.ask(payload));
    const second = verdictOf(await bench.ask(payload));
    return first === second ? null : `asked twice, it answered ${first ?? "nothing"} and then ${second ?? "nothing"}`;
  },
};
