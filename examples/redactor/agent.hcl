# A plugin rewrites what the model is about to see. `settings.redact` does the same for the ledger, which no plugin can.
#
#   hookledger dispatch --payload messages.json --json | jq .payload

required_providers {
  redactor = { source = "./redactor.mjs" }
}

# JavaScript regular expressions; a match becomes the name in brackets.
provider "redactor" {
  patterns = {
    "api key" = "\\bsk-[A-Za-z0-9]{20,}"
    "e-mail"  = "(?<![\\w.+-])[\\w.+-]{1,64}@[\\w-]+(?:\\.[\\w-]+)+"
  }
}

hook "pre-model-call" {
  provider   = "redactor"
  mode       = "transform"
  timeout_ms = 800
}

settings {
  redact = ["\\bsk-[A-Za-z0-9]{20,}"]
}
