# A transform rewrites what the model is about to see, and `redact` keeps keys out of the ledger.
#
#   hookledger dispatch --payload messages.json --json | jq .payload        what the model gets
#   hookledger replay <id> --json | jq .payload                            what was recorded: no key

required_providers {
  scrubber = { source = "module:./scrubber.mjs" }
}

hook "pre-model-call" {
  provider   = "scrubber"
  mode       = "transform"
  timeout_ms = 500
}

settings {
  redact = ["sk-[A-Za-z0-9]{20,}"]
}
