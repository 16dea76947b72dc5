# Two observers of finished tool calls. They run side by side and nobody waits for them: a slow or failing one costs the
# caller nothing, and its error is recorded all the same.
#
#   hookledger dispatch --payload result.json      exit 0, although `flaky` fails

required_providers {
  counter = { source = "module:./counter.mjs" }
  flaky   = { source = "module:./flaky.mjs" }
}

hook "post-tool-call" {
  provider = "counter"
  mode     = "observe"
}

hook "post-tool-call" {
  provider   = "flaky"
  mode       = "observe"
  timeout_ms = 1000
}

settings {
  observe_concurrency = "detached"
}
