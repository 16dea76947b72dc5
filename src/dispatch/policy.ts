import { evaluatePolicy, type PolicyRule } from "../core/policy.js";
import { readPlan, stampPlan } from "../payload/plan.js";
import { failed, thrownText } from "../subscribers/fault.js";
import type { ChainTransport } from "./chain.js";

export const POLICY_ID = "kernel:policy";

/** The kernel's policy engine as the first link of plan-ready: in process, no subscriber service. */
export function policyTransport(rules: readonly PolicyRule[]): ChainTransport {
  return {
    invoke(call) {
      try {
        const items = evaluatePolicy(rules, readPlan(call.payload));
        return Promise.resolve({ class: "policy", payload: stampPlan(call.payload, items), items });
      } catch (error) {
        return Promise.resolve(failed("veto", `policy: ${thrownText(error)}`));
      }
    },
  };
}
