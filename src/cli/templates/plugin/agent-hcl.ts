/** The configuration that `init --plugin` writes. */
export const PLUGIN_AGENT_HCL = `# Starts the plugin of this folder, for its tests and for trying it out. \`npx hookledger validate --load\` checks it.

required_providers {
  guard = { source = "./plugin.mjs" }
}

# What the plugin finds in ctx.config.
provider "guard" {
  max_items = 20
}

hook "pre-model-call" {
  provider   = "guard"
  mode       = "transform"
  timeout_ms = 800
}

hook "plan-ready" {
  provider   = "guard"
  mode       = "veto"
  timeout_ms = 500
}
`;
