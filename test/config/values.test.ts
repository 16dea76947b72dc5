import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EnvReference } from "#src/config/types.js";
import { everything, parse } from "./marked.js";

async function configOf(text: string) {
  const result = await parse(text, { probe: everything });
  if (!result.ok) throw new Error(JSON.stringify(result.errors));
  return result.config;
}

async function bodyOf(body: string) {
  const config = await configOf(`required_providers {\n  a = { source = "host" }\n}\nprovider "a" {\n${body}\n}\n`);
  return config.providers.get("a")?.body;
}

describe("the values of a configuration", () => {
  it("should read the whole schema", async () => {
    const config = await configOf(`
required_providers {
  redactor = { source = "./plugins/redactor", version = "~> 1.2", args = ["-v"], env = ["HOME"], start_timeout_ms = 5000,
               cookie = { key = "K", value = env("COOKIE") }, protocol_version = 2, auto_mtls = "require" }
  plain    = { source = "./plugins/plain" }
  gate     = { source = "grpc+unix:///run/gate.sock" }
  open     = { source = "grpc://10.0.0.1:50051", insecure = true }
  secure   = { source = "grpcs://gate.example.org:443", tls = { ca = "./ca.pem", cert = "./c.pem", key = "/etc/k.pem", server_name = "gate" } }
  notes    = { source = "module:./notes.mjs", sensitive = ["token"] }
  own      = { source = "host" }
  forge    = { source = "github.com/acme/guard" }
  local    = { source = "github.com/acme/local" }
}
provider "notes" {
  directory = "./notes"
  token     = env("NOTES_TOKEN")
}
hook "pre-tool-call" {
  provider   = "notes"
  mode       = "veto"
  id         = "main"
  timeout_ms = 800
  recording  = "write-ahead"
  shadow     = true
}
policy "gate_writes" {
  match  = { kind = "resource", provider = "filesystem", tool_name = "write", risk = "high" }
  action = "ask"
  reason = "writes are asked"
}
agent_profile "planner" {
  model = "large"
  tools = [filesystem.read]
}
settings {
  default_hook_timeout_ms = 1500
  observe_concurrency     = "detached"
  recording               = "write-ahead"
  on_store_failure        = "continue"
  strict                  = true
  redact                  = ["sk-[A-Za-z0-9]{20,}"]
  max_message_bytes       = 1048576
  chain_budget_ms         = 10000
  host_label              = "builder-1"
  dev_overrides           = { "github.com/acme/local" = "./build/local" }
  default_frontend        = "tui"
  log_level               = "debug"
  telemetry               = true
  retry { attempts = 3 }
  observability {
    endpoint = env("OTLP")
  }
}
`);
    const folder = process.cwd();
    const source = (name: string) => config.providers.get(name)?.source;
    expect([...config.providers.keys()]).toEqual([
      "redactor",
      "plain",
      "gate",
      "open",
      "secure",
      "notes",
      "own",
      "forge",
      "local",
    ]);
    expect(source("redactor")).toEqual({
      kind: "plugin",
      path: `${folder}/plugins/redactor`,
      launch: {
        args: ["-v"],
        env: ["HOME"],
        startTimeoutMs: 5000,
        cookie: { key: "K", value: new EnvReference("COOKIE", { file: "agent.hcl", line: 4, col: 46 }) },
        protocolVersion: 2,
        autoMtls: "require",
      },
    });
    const launch = { args: [], env: [], startTimeoutMs: 10_000, autoMtls: "auto" };
    expect(source("plain")).toEqual({ kind: "plugin", path: `${folder}/plugins/plain`, launch });
    expect(source("gate")).toEqual({ kind: "grpc", transport: "unix", target: "/run/gate.sock", insecure: false });
    expect(source("open")).toEqual({ kind: "grpc", transport: "tcp", target: "10.0.0.1:50051", insecure: true });
    expect(source("secure")).toEqual({
      kind: "grpc",
      transport: "tls",
      target: "gate.example.org:443",
      insecure: false,
      tls: { ca: `${folder}/ca.pem`, cert: `${folder}/c.pem`, key: "/etc/k.pem", serverName: "gate" },
    });
    expect(source("own")).toEqual({ kind: "host" });
    expect(source("forge")).toEqual({
      kind: "forge",
      address: "github.com/acme/guard",
      path: `${folder}/.agent/plugins/forge`,
      launch,
    });
    expect(source("local")).toEqual({
      kind: "forge",
      address: "github.com/acme/local",
      path: `${folder}/build/local`,
      launch,
    });
    expect(config.providers.get("notes")).toEqual({
      name: "notes",
      sourceText: "module:./notes.mjs",
      source: { kind: "module", path: `${folder}/notes.mjs` },
      sensitive: ["token"],
      body: { directory: "./notes", token: new EnvReference("NOTES_TOKEN", { file: "agent.hcl", line: 16, col: 15 }) },
      place: { file: "agent.hcl", line: 9, col: 3 },
    });
    expect(config.providers.get("redactor")).toMatchObject({ version: "~> 1.2", sensitive: [] });
    expect(config.hooks).toEqual([
      {
        point: "pre-tool-call",
        provider: "notes",
        mode: "veto",
        id: "main",
        timeoutMs: 800,
        recording: "write-ahead",
        shadow: true,
        place: { file: "agent.hcl", line: 18, col: 1 },
      },
    ]);
    expect(config.policy).toEqual([
      {
        name: "gate_writes",
        match: { kind: "resource", provider: "filesystem", tool_name: "write", risk: "high" },
        action: "ask",
        reason: "writes are asked",
        place: { file: "agent.hcl", line: 26, col: 1 },
      },
    ]);
    expect(config.profiles).toEqual(
      new Map([
        [
          "planner",
          {
            name: "planner",
            body: { model: "large", tools: [`\${filesystem.read}`] },
            place: { file: "agent.hcl", line: 31, col: 1 },
          },
        ],
      ]),
    );
    expect(config.settings).toEqual({
      defaultHookTimeoutMs: 1500,
      observeConcurrency: "detached",
      recording: "write-ahead",
      onStoreFailure: "continue",
      strict: true,
      redact: ["sk-[A-Za-z0-9]{20,}"],
      maxMessageBytes: 1_048_576,
      chainBudgetMs: 10_000,
      hostLabel: "builder-1",
      kept: {
        default_frontend: "tui",
        log_level: "debug",
        telemetry: true,
        retry: [{ attempts: 3 }],
        observability: [{ endpoint: new EnvReference("OTLP", { file: "agent.hcl", line: 51, col: 16 }) }],
      },
    });
  });

  it("should fill in the defaults", async () => {
    const config = await configOf("");
    expect(config).toEqual({
      files: ["agent.hcl"],
      providers: new Map(),
      hooks: [],
      policy: [],
      profiles: new Map(),
      settings: {
        defaultHookTimeoutMs: 5000,
        observeConcurrency: "concurrent",
        recording: "barrier",
        onStoreFailure: "abort",
        strict: false,
        redact: [],
        maxMessageBytes: 67_108_864,
        kept: {},
      },
      canonical: '{"blocks":[]}',
    });
  });

  it("should read every form of literal as HCL means it", async () => {
    expect(
      await bodyOf(`
  none   = null
  yes    = true
  whole  = 12
  part   = -1.5e3
  text   = "tab\\t, \\"quote\\", \\u00e9, $\${x}, %%{y}, $, %"
  lines  = <<EOT
one \\n
  two
EOT
  flush  = <<-EOT
    one
      two
    EOT
  list   = [1, "two", [], {}]
  object = { a = 1, "b c" : 2, 3 = "three" }`),
    ).toEqual({
      none: null,
      yes: true,
      whole: 12,
      part: -1500,
      text: `tab\t, "quote", é, \${x}, %{y}, $, %`,
      lines: "one \\n\n  two\n",
      flush: "one\n  two\n",
      list: [1, "two", [], {}],
      object: { a: 1, "b c": 2, 3: "three" },
    });
  });

  it("should read blocks as lists, with a level for each label", async () => {
    expect(
      await bodyOf(`
  retry {
    n = 1
  }
  retry {
    n = 2
  }
  route "a" "x" {
    to = 1
  }
  route "a" "y" {
    to = 2
  }
  route "b" "x" {
  }`),
    ).toEqual({
      retry: [{ n: 1 }, { n: 2 }],
      route: { a: { x: [{ to: 1 }], y: [{ to: 2 }] }, b: { x: [{}] } },
    });
  });

  it("should take env() as a whole value anywhere in a provider body", async () => {
    expect(await bodyOf('  list = [env("A"), { b = env("_B2") }]')).toEqual({
      list: [
        new EnvReference("A", { file: "agent.hcl", line: 5, col: 11 }),
        { b: new EnvReference("_B2", { file: "agent.hcl", line: 5, col: 27 }) },
      ],
    });
  });

  it("should give back any string and any tree that was written", async () => {
    const tree = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => text.normalize()),
        fc.stringMatching(/^[$%{}"\\]{0,8}$/),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(fc.stringMatching(/^[a-z $%{]{1,6}$/), tie("value"), { maxKeys: 3 }),
      ),
    })).value;
    await fc.assert(
      fc.asyncProperty(tree, async (value) => {
        expect(await bodyOf(`  v = ${hcl(value)}`)).toEqual({ v: value });
      }),
      { seed: 11, numRuns: 200 },
    );
  });
});

/** A value as HCL. */
function hcl(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value)) return `[${value.map(hcl).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{\n${Object.entries(value)
      .map(([key, member]) => `${quote(key)} = ${hcl(member)}\n`)
      .join("")}}`;
  }
  return String(value);
}

function quote(text: string): string {
  const escaped = [...text].map((character) => {
    if (character === '"' || character === "\\") return `\\${character}`;
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 ? `\\u${code.toString(16).padStart(4, "0")}` : character;
  });
  return `"${escaped.join("").replace(/[$%](?=\{)/g, "$&$&")}"`;
}
