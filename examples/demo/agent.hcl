# What the agent of the demo may do, and who watches it. `npm run demo` puts the folder of this clone for /opt/hookledger, and
# folders of its own for /run/hookledger-demo and /var/lib/hookledger-demo.

# Plugins are programs that the kernel starts; the cost saver is somebody else's service, which runs already.
required_providers {
  redactor   = { source = "/opt/hookledger/examples/redactor/redactor.mjs" }
  approvals  = { source = "/opt/hookledger/examples/demo/plugins/approvals.mjs" }
  metrics    = { source = "/opt/hookledger/examples/demo/plugins/metrics.mjs" }
  audit      = { source = "/opt/hookledger/examples/audit-sink/audit-sink.mjs" }
  cost-saver = { source = "grpc+unix:///run/hookledger-demo/cost-saver.sock" }
}

provider "redactor" {
  patterns = { "key removed" = "sk-[A-Za-z0-9]{20,}" }
}

provider "audit" {
  file = "/var/lib/hookledger-demo/audit.ndjson"
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
  timeout_ms = 600
}

hook "post-tool-call" {
  provider = "metrics"
  mode     = "observe"
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
