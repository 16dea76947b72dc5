# A plan is judged item by item by policy, and then as a whole by a module.
#
#   hookledger dispatch --payload plan.json        exit 8: one item is to be asked about
#   hookledger dispatch --payload drop.json        exit 3: the gate denies the whole plan

required_providers {
  gate = { source = "module:./gate.mjs" }
}

provider "gate" {
  forbidden = ["drop_database", "delete_branch"]
}

hook "plan-ready" {
  provider   = "gate"
  mode       = "veto"
  timeout_ms = 500
}

policy "ask_before_writing" {
  match  = { kind = "resource" }
  action = "ask"
  reason = "whatever changes something is asked about"
}

policy "scratch_is_free" {
  match  = { provider = "scratch" }
  action = "allow"
}
