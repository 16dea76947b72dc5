# What the agent of the demo may do, and who watches it. `npm run demo` puts a folder of its own for /run/hookledger-demo.

required_providers {
  redactor   = { source = "grpc+unix:///run/hookledger-demo/redactor.sock" }
  cost-saver = { source = "grpc+unix:///run/hookledger-demo/cost-saver.sock" }
  approvals  = { source = "grpc+unix:///run/hookledger-demo/approvals.sock" }
  audit      = { source = "grpc+unix:///run/hookledger-demo/audit.sock" }
}

# In this order: the second one sees what the first one made of the messages.
hook "pre-model-call" {
  provider = "redactor"
  mode     = "transform"
}

hook "pre-model-call" {
  provider = "cost-saver"
  mode     = "transform"
}

hook "pre-tool-call" {
  provider   = "approvals"
  mode       = "veto"
  timeout_ms = 400
}

hook "post-tool-call" {
  provider = "audit"
  mode     = "observe"
}

# The kernel judges every item of a plan by these, before any plugin is asked. The more specific rule wins.
policy "never_critical" {
  match  = { risk = "critical" }
  action = "deny"
  reason = "what cannot be undone is not for an agent to do"
}

policy "ask_before_writing" {
  match  = { kind = "resource" }
  action = "ask"
  reason = "whatever changes something is asked about"
}

settings {
  # Never recorded, whoever sends or answers it.
  redact = ["sk-[A-Za-z0-9]{20,}"]
}
