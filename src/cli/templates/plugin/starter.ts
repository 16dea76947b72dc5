import { PLAN_PAYLOAD } from "../plan-payload.js";
import type { Starter } from "../starter.js";
import { PLUGIN_AGENT_HCL } from "./agent-hcl.js";
import { MODEL_CALL_PAYLOAD } from "./model-call-payload.js";
import { packageJson } from "./package-json.js";
import { PLUGIN_MODULE } from "./plugin-module.js";
import { PLUGIN_TEST } from "./plugin-test.js";
import { PLUGIN_README } from "./readme.js";

/** A package whose program is a plugin, with its test and a configuration that starts it. `hookledger`: where npm finds it. */
export const pluginStarter = (hookledger: string): Starter => ({
  files: [
    { path: "package.json", text: packageJson(hookledger), what: "a package with hookledger as its one dependency" },
    { path: "plugin.mjs", text: PLUGIN_MODULE, what: "the plugin", executable: true },
    { path: "test/plugin.test.mjs", text: PLUGIN_TEST, what: "its test, through a real kernel" },
    { path: "agent.hcl", text: PLUGIN_AGENT_HCL, what: "a configuration that starts the plugin" },
    { path: "payloads/plan-ready.json", text: PLAN_PAYLOAD, what: "a payload for the veto" },
    { path: "payloads/pre-model-call.json", text: MODEL_CALL_PAYLOAD, what: "a payload for the transform" },
    { path: "README.md", text: PLUGIN_README, what: "what to type" },
  ],
  next: [
    "npm install",
    "npm test",
    "npx hookledger validate --load",
    "npx hookledger dispatch --payload payloads/plan-ready.json",
    "npx hookledger conformance --provider guard",
  ],
});
