import { AGENT_HCL } from "./agent-hcl.js";
import { GUARD_MODULE } from "./guard-module.js";
import { PLAN_PAYLOAD } from "./plan-payload.js";
import type { Starter } from "./starter.js";

/** A configuration with a subscriber that Node imports. */
export const MODULE_STARTER: Starter = {
  files: [
    { path: "agent.hcl", text: AGENT_HCL, what: "who subscribes where, policy, settings" },
    { path: "hooks/guard.mjs", text: GUARD_MODULE, what: "a subscriber" },
    { path: "payloads/plan-ready.json", text: PLAN_PAYLOAD, what: "a payload to dispatch" },
  ],
  next: [
    "npx hookledger validate --load",
    "npx hookledger dispatch --payload payloads/plan-ready.json",
    "npx hookledger list",
    "npx hookledger verify --all",
  ],
};
