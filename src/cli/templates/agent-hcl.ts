/** The configuration that `init` writes. */
export const AGENT_HCL = `# hookledger configuration. \`hookledger validate\` checks it and shows the chain of every hook point.

# Who may subscribe. A module is a file that Node imports; gRPC addresses and functions of an embedding
# program are declared here too:
#   gate = { source = "grpc+unix:///run/gate.sock" }
#   host = { source = "host" }
required_providers {
  guard = { source = "module:./hooks/guard.mjs" }
}

# Settings of the subscriber's own: it finds them in ctx.config.
provider "guard" {
  max_items = 20
}

# Who is called where, in this order.
#   observe    looks on; whatever happens to it changes nothing
#   transform  may rewrite the messages of pre-model-call; if it fails, the dispatch is aborted
#   veto       may deny a pre-tool-call or a plan-ready; if it fails, that is a deny
hook "pre-model-call" {
  provider   = "guard"
  mode       = "transform"
  timeout_ms = 800
}

hook "plan-ready" {
  provider = "guard"
  mode     = "veto"
}

hook "post-tool-call" {
  provider = "guard"
  mode     = "observe"
}

# The kernel's own rules come first at plan-ready, before every subscriber. The most specific match wins; without
# one, what only reads is allowed and what changes something is to be asked about.
policy "ask_before_writing" {
  match  = { provider = "filesystem", kind = "resource" }
  action = "ask"
  reason = "files are written only after somebody has agreed"
}

settings {
  default_hook_timeout_ms = 1500

  # RE2 patterns. What matches never reaches the ledger; subscribers and the caller still see it.
  redact = ["sk-[A-Za-z0-9]{20,}"]
}
`;
