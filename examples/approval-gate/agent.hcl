# An approval gate in Go, as a plugin of its own: see README.md for how it is built.
#
#   hookledger dispatch --payload plan.json        exit 3: the gate denies, and says why
#   hookledger dispatch --payload call.json        exit 0: nothing speaks against it

required_providers {
  approval_gate = { source = "./approval-gate", version = "~> 1.0" }
}

# What the plugin reads as JSON in HOOKLEDGER_PROVIDER_CONFIG.
provider "approval_gate" {
  deny = [
    { risk = "critical", reason = "what cannot be undone is not for an agent to do" },
    { provider = "git*", tool = "push_*", reason = "publishing is for people" },
    { tool = "run_command", argument = "command", contains = "rm -rf", reason = "it removes without asking" },
  ]
}

hook "plan-ready" {
  provider   = "approval_gate"
  mode       = "veto"
  timeout_ms = 1000
}

hook "pre-tool-call" {
  provider   = "approval_gate"
  mode       = "veto"
  timeout_ms = 1000
}

policy "the_gate_decides" {
  match  = {}
  action = "allow"
}
