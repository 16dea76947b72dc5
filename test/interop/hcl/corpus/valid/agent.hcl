required_providers {
  redactor = { source = "./plugins/redactor", version = "~> 1.2" }
  gate     = { source = "grpc+unix:///run/gate.sock" }
}
hook "pre-model-call" {
  provider   = "redactor"
  mode       = "transform"
  timeout_ms = 800
}
policy "gate_writes" {
  match  = { provider = "filesystem", kind = "resource" }
  action = "ask"
}
settings {
  redact = ["sk-[A-Za-z0-9]{20,}"]
}
