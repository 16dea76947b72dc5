# A plugin writes an audit trail of its own, beside the ledger: a line each for tool calls, applied plans and sessions.
#
#   hookledger dispatch --payload result.json --session s-1      one more line in audit.ndjson
#   hookledger dispatch --payload end.json --session s-1

required_providers {
  audit = { source = "./audit-sink.mjs" }
}

provider "audit" {
  file = "audit.ndjson"
}

hook "session-start" {
  provider = "audit"
  mode     = "observe"
}

hook "post-tool-call" {
  provider = "audit"
  mode     = "observe"
}

hook "post-apply" {
  provider = "audit"
  mode     = "observe"
}

hook "session-end" {
  provider = "audit"
  mode     = "observe"
}

# Nobody waits for the trail; the kernel does, before it closes.
settings {
  observe_concurrency = "detached"
}
