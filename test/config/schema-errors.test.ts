import { describe, expect, it } from "vitest";
import { errorsOf, unmark } from "./marked.js";

/** What a case is about, its text with the expected place marked, the message, and the hint where one matters. */
type Case = readonly [what: string, marked: string, message: string, hint?: string];

const PROVIDERS = `required_providers {
  a = { source = "host" }
  b = { source = "host" }
}
`;

function hook(body: string, point = "plan-ready"): string {
  return `${PROVIDERS}hook "${point}" {\n${body}\n}\n`;
}

function entry(body: string): string {
  return `required_providers {\n  a = { ${body} }\n}\n`;
}

function settings(body: string): string {
  return `settings {\n  ${body}\n}\n`;
}

const topLevel: readonly Case[] = [
  ["an unknown block", '‸hok "x" {\n}', 'unknown block "hok"', 'did you mean "hook"?'],
  [
    "an unknown block that resembles nothing",
    "‸resource {\n}",
    'unknown block "resource"',
    "known here: required_providers, provider, hook, policy, agent_profile, settings",
  ],
  ["an attribute at the top", "‸version = 1", 'unknown attribute "version"'],
  [
    "a block written as an attribute",
    "‸settings = {}",
    'unexpected attribute "settings"',
    "write it as a block: settings { … }",
  ],
  ["a second settings block", "settings {\n}\n‸settings {\n}", "a second settings block; first at agent.hcl:1:1"],
  ["a label on settings", 'settings ‸"x" {\n}', "settings takes no label"],
  ["a label on required_providers", 'required_providers ‸"x" {\n}', "required_providers takes no label"],
  [
    "two profiles of one name",
    'agent_profile "p" {\n}\nagent_profile ‸"p" {\n}',
    'a second agent_profile "p"; first at agent.hcl:1:1',
  ],
  ["a profile without a name", "‸agent_profile {\n}", "agent_profile takes one label, its name"],
  ["a profile with two labels", 'agent_profile "p" ‸"q" {\n}', "agent_profile takes one label, its name"],
  [
    "a profile's name",
    'agent_profile ‸"Planner" {\n}',
    '"Planner" is not a valid name',
    "a name is a lower-case letter, then at most 63 of a-z, 0-9, _ and -",
  ],
  ["a column after characters outside the BMP", 'settings {\n  host_label = "😀é" \n ‸😀 = 1\n}', "invalid character"],
  [
    "an attribute set twice",
    "settings {\n  strict = true\n  ‸strict = false\n}",
    'attribute "strict" is set twice; first at agent.hcl:2:3',
  ],
  [
    "a key set twice",
    'policy "p" {\n  match = { kind = "resource", ‸"kind" = "resource" }\n  action = "ask"\n}',
    'key "kind" is set twice; first at agent.hcl:2:13',
  ],
  [
    "a key set twice deep inside",
    `${PROVIDERS}provider "a" {\n  x = [{ y = { z = 1, ‸"\\u007a" = 2 } }]\n}`,
    'key "z" is set twice; first at agent.hcl:6:16',
  ],
];

const hooks: readonly Case[] = [
  [
    "an undeclared provider",
    hook('provider = ‸"gate"\nmode = "veto"'),
    'provider "gate" is not in required_providers',
    "known here: a, b",
  ],
  [
    "an undeclared provider that resembles one",
    'required_providers {\n  notes = { source = "host" }\n}\nhook "plan-ready" {\n  provider = ‸"note"\n  mode = "veto"\n}',
    'provider "note" is not in required_providers',
    'did you mean "notes"?',
  ],
  ["a missing provider", `‸hook "plan-ready" {\n  mode = "veto"\n}`, 'hook needs the attribute "provider"'],
  ["a missing mode", `${PROVIDERS}‸hook "plan-ready" { provider = "a" }`, 'hook needs the attribute "mode"'],
  [
    "an unknown mode",
    hook('provider = "a"\nmode = ‸"vetto"'),
    'mode must be "observe", "transform" or "veto", not "vetto"',
    'did you mean "veto"?',
  ],
  [
    "a mode that is no string",
    hook('provider = "a"\nmode = ‸1'),
    'mode must be "observe", "transform" or "veto", not the number 1',
  ],
  [
    "an unknown attribute",
    hook('provider = "a"\nmode = "veto"\n‸timeout = 5'),
    'unknown attribute "timeout" in hook',
    'did you mean "timeout_ms"?',
  ],
  ["a nested block", hook('provider = "a"\nmode = "veto"\n‸retry {\n}'), 'unknown block "retry" in hook'],
  [
    "an attribute written as a block",
    hook('provider = "a"\nmode = "veto"\n‸shadow {\n}'),
    'unexpected block "shadow" in hook',
    "write shadow = …",
  ],
  [
    "no point",
    `${PROVIDERS}‸hook {\n  provider = "a"\n  mode = "veto"\n}`,
    "hook takes one label, its point",
    'hook "plan-ready" { … }',
  ],
  [
    "two labels",
    `${PROVIDERS}hook "plan-ready" ‸"x" {\n  provider = "a"\n  mode = "veto"\n}`,
    "hook takes one label, its point",
  ],
  [
    "an unknown point",
    `${PROVIDERS}hook ‸"plan-redy" {\n  provider = "a"\n  mode = "veto"\n}`,
    'unknown hook point "plan-redy"',
    'did you mean "plan-ready"?',
  ],
  [
    "a point named as an object's own",
    `${PROVIDERS}hook ‸"__proto__" {\n  provider = "a"\n  mode = "veto"\n}`,
    'unknown hook point "__proto__"',
  ],
  [
    "context-assemble",
    `${PROVIDERS}hook ‸"context-assemble" {\n  provider = "a"\n  mode = "transform"\n}`,
    "context-assemble is not dispatched here: it is served by ContextService.Contribute",
  ],
  ...["session-start", "pre-model-call", "post-model-response", "post-tool-call", "post-apply", "session-end"].map(
    (point): Case => [
      `a veto at ${point}`,
      hook('provider = "a"\n  mode = ‸"veto"', point),
      `nothing can be vetoed at ${point}`,
      "a veto stands at pre-tool-call or plan-ready",
    ],
  ),
  ["an id's form", hook('provider = "a"\nmode = "veto"\nid = ‸"Main"'), 'id "Main" is not a valid name'],
  [
    "a long id",
    hook(`provider = "a"\nmode = "veto"\nid = ‸"${"x".repeat(65)}"`),
    `id "${"x".repeat(64)}…" is not a valid name`,
  ],
  ...[
    ["0", "0"],
    ["600001", "600001"],
    ["1.5", "1.5"],
    ["-1", "-1"],
  ].map(
    ([written, shown]): Case => [
      `a timeout of ${written}`,
      hook(`provider = "a"\nmode = "veto"\ntimeout_ms = ‸${written}`),
      `timeout_ms must be a whole number from 1 to 600000, not ${shown}`,
    ],
  ),
  [
    "a timeout in quotes",
    hook('provider = "a"\nmode = "veto"\ntimeout_ms = ‸"800"'),
    'timeout_ms must be a whole number from 1 to 600000, not the string "800"',
  ],
  [
    "a timeout to be computed",
    hook('provider = "a"\nmode = "veto"\ntimeout_ms = ‸2 * 400'),
    "timeout_ms must be a whole number from 1 to 600000, not the expression 2 * 400",
    'nothing is evaluated here: write a literal; env("NAME") stands in a provider body only',
  ],
  [
    "a null",
    hook('provider = "a"\nmode = "veto"\ntimeout_ms = ‸null'),
    "timeout_ms must be a whole number from 1 to 600000, not null",
  ],
  [
    "an env() outside a provider",
    hook('provider = ‸env("X")\nmode = "veto"'),
    'provider must be a string, not env("X")',
  ],
  [
    "an interpolated string",
    hook(`provider = ‸"\${a}"\nmode = "veto"`),
    `provider must be a string, not the expression "\${a}"`,
  ],
  [
    "a shadow that is no boolean",
    hook('provider = "a"\nmode = "veto"\nshadow = ‸"yes"'),
    'shadow must be true or false, not the string "yes"',
  ],
  [
    "a recording",
    hook('provider = "a"\nmode = "veto"\nrecording = ‸"write_ahead"'),
    'recording must be "barrier" or "write-ahead", not "write_ahead"',
    'did you mean "write-ahead"?',
  ],
  [
    "two hooks of one provider without ids",
    `${hook('provider = "a"\nmode = "veto"')}‸hook "plan-ready" {\n  provider = "a"\n  mode = "observe"\n}`,
    'provider "a" has two hooks without an id at plan-ready; first at agent.hcl:5:1',
    "give each a different id",
  ],
  [
    "two hooks of one provider with one id",
    hook('provider = "a"\nmode = "veto"\nid = "x"') +
      'hook "plan-ready" {\n  provider = "a"\n  mode = "observe"\n  id = ‸"x"\n}',
    'provider "a" has two hooks with the id "x" at plan-ready; first at agent.hcl:5:1',
  ],
  [
    "a transform after a veto, under strict",
    `${hook('provider = "a"\nmode = "veto"')}‸hook "plan-ready" {\n  provider = "b"\n  mode = "transform"\n}\nsettings { strict = true }`,
    "this transform runs after the veto at agent.hcl:5:1, which then judged another payload",
    "declare transforms before vetoes",
  ],
];

const providers: readonly Case[] = [
  ["no source", 'required_providers {\n  ‸a = { version = "1.0" }\n}', 'provider "a" needs the attribute "source"'],
  [
    "no object",
    'required_providers {\n  a = ‸"host"\n}',
    'provider "a" must be an object: { source = … }, not the string "host"',
  ],
  [
    "a block in required_providers",
    "required_providers {\n  ‸a {\n  }\n}",
    'unexpected block "a" in required_providers',
    "write a = { source = … }",
  ],
  ["a name's form", 'required_providers {\n  ‸A = { source = "host" }\n}', '"A" is not a valid name for a provider'],
  [
    "one name in two blocks",
    'required_providers {\n  a = { source = "host" }\n}\nrequired_providers {\n  ‸a = { source = "host" }\n}',
    'provider "a" is declared twice; first at agent.hcl:2:3',
  ],
  [
    "an unknown attribute",
    entry('source = "host", ‸sources = 1'),
    'unknown attribute "sources" in provider "a"',
    'did you mean "source"?',
  ],
  ["a computed key", entry('source = "host", ‸(x) = 1'), 'unknown attribute "(x)" in provider "a"'],
  ["a source that is none", entry('source = ‸"http://x"'), 'source "http://x" is no source'],
  [
    "a source scheme misspelt",
    entry('source = ‸"modul:./x.mjs"'),
    'source "modul:./x.mjs" is no source',
    'did you mean "module:"?',
  ],
  ["an empty source", entry('source = ‸""'), 'source "" is no source'],
  ["a control character", entry('source = ‸"./a\\u0000b"'), 'source "./a\\u{0}b" holds a control character'],
  [
    "a bare module specifier",
    entry('source = ‸"module:left-pad"'),
    'source "module:left-pad" is not a path to a file',
    "after module: write a path that starts with ./, ../ or /",
  ],
  [
    "a module URL",
    entry('source = ‸"module:https://x.org/a.mjs"'),
    'source "module:https://x.org/a.mjs" is not a path to a file',
  ],
  ["a builtin module", entry('source = ‸"module:node:fs"'), 'source "module:node:fs" is not a path to a file'],
  [
    "a module Node cannot import",
    entry('source = ‸"module:./a.ts"'),
    'source "module:./a.ts" is not a file that Node imports',
    "its name must end in .mjs, .js or .cjs",
  ],
  [
    "a module with a query",
    entry('source = ‸"module:./a.mjs?x"'),
    'source "module:./a.mjs?x" is not a file that Node imports',
  ],
  [
    "a module outside",
    entry('source = ‸"module:../a.mjs"'),
    '"../a.mjs" leaves the folder of the configuration',
    "write an absolute path to name a file elsewhere",
  ],
  ["a plugin outside", entry('source = ‸"./x/../../a"'), '"./x/../../a" leaves the folder of the configuration'],
  ["the folder itself", entry('source = ‸"./"'), '"./" leaves the folder of the configuration'],
  [
    "a relative socket",
    entry('source = ‸"grpc+unix://run/x.sock"'),
    'source "grpc+unix://run/x.sock" is not the path of a socket',
  ],
  ["an address without a port", entry('source = ‸"grpc://localhost"'), 'source "grpc://localhost" is not an address'],
  ["an address with port 0", entry('source = ‸"grpc://localhost:0"'), 'source "grpc://localhost:0" is not an address'],
  ["an address with a large port", entry('source = ‸"grpcs://h:65536"'), 'source "grpcs://h:65536" is not an address'],
  [
    "an address with a path",
    entry('source = ‸"grpc://localhost:1/x"'),
    'source "grpc://localhost:1/x" is not an address',
  ],
  [
    "an address with a user",
    entry('source = ‸"grpc://u@localhost:1"'),
    'source "grpc://u@localhost:1" is not an address',
  ],
  [
    "plain TCP beyond loopback",
    entry('source = ‸"grpc://10.0.0.1:50051"'),
    'plain TCP to "10.0.0.1:50051" would carry payloads unprotected',
    "use grpcs://, or set insecure = true where the network protects them",
  ],
  [
    "a host that only looks like loopback",
    entry('source = ‸"grpc://127.evil.org:1"'),
    'plain TCP to "127.evil.org:1" would carry payloads unprotected',
  ],
  ["insecure on a socket", entry('source = "grpc+unix:///x", insecure = ‸true'), "insecure is for plain TCP (grpc:)"],
  ["tls on plain TCP", entry('source = "grpc://localhost:1", tls = ‸{}'), "tls is for grpcs:"],
  ["tls on a module", entry('source = "module:./x.mjs", ‸tls = {}'), "tls is for an address (grpc:, grpcs:)"],
  [
    "insecure on a host function",
    entry('source = "host", ‸insecure = true'),
    "insecure is for an address (grpc:, grpcs:)",
  ],
  [
    "an unknown attribute of tls",
    entry('source = "grpcs://h:1", tls = { ‸pem = "x" }'),
    'unknown attribute "pem" in provider "a": tls',
  ],
  [
    "a certificate without its key",
    entry('source = "grpcs://h:1", tls = ‸{ cert = "./c.pem" }'),
    "tls.cert and tls.key belong together",
  ],
  [
    "a certificate outside",
    entry('source = "grpcs://h:1", tls = { ca = ‸"../ca.pem" }'),
    '"../ca.pem" leaves the folder of the configuration',
  ],
  [
    "plugin attributes on an address",
    entry('source = "grpcs://h:1", ‸args = []'),
    "args is for a plugin that hookledger starts",
  ],
  ["arguments that are no list", entry('source = "./p", args = ‸"-v"'), 'args must be a list, not the string "-v"'],
  [
    "an argument that is no string",
    entry('source = "./p", args = ["-v", ‸1]'),
    "args[1] must be a string, not the number 1",
  ],
  ["an argument with a NUL", entry('source = "./p", args = [‸"\\u0000"]'), "args[0] holds a NUL"],
  ["a variable's name", entry('source = "./p", env = [‸"A=B"]'), 'env[0] "A=B" is no name of an environment variable'],
  [
    "a start timeout",
    entry('source = "./p", start_timeout_ms = ‸0'),
    "start_timeout_ms must be a whole number from 1 to 600000, not 0",
  ],
  ["auto_mtls", entry('source = "./p", auto_mtls = ‸true'), 'auto_mtls must be "auto", "require" or "off", not true'],
  [
    "a cookie without a value",
    entry('source = "./p", cookie = ‸{ key = "K" }'),
    'provider "a": cookie needs the attribute "cookie.value"',
  ],
  [
    "a cookie's value",
    entry('source = "./p", cookie = { key = "K", value = ‸1 }'),
    'cookie.value must be a string or env("NAME"), not the number 1',
  ],
  ["a version", entry('source = "host", version = ‸"latest"'), 'version "latest" is no version constraint'],
  [
    "sensitive that is no list",
    entry('source = "host", sensitive = ‸"token"'),
    'sensitive must be a list, not the string "token"',
  ],
  ["a body for nobody", `${PROVIDERS}provider ‸"c" {\n}`, 'provider "c" is not in required_providers'],
  ["two bodies", `${PROVIDERS}provider "a" {\n}\nprovider ‸"a" {\n}`, 'a second provider "a"; first at agent.hcl:5:1'],
  [
    "a body without a name",
    `${PROVIDERS}‸provider {\n}`,
    "provider takes one label, its name",
    'provider "name" { … }',
  ],
  [
    "a body for an address",
    `${entry('source = "grpcs://h:1"')}‸provider "a" {\n}`,
    "a provider that is reached at an address takes no body",
    "configure it where it runs",
  ],
  ...[
    '"secret"',
    `"\${env("T")}"`,
    'env("T") == ""',
    'env("T", "U")',
    `env("\${x}")`,
    '[env("T")]',
    'lower(env("T"))',
    "null",
  ].map(
    (written): Case => [
      `a sensitive attribute of ${written}`,
      `${entry('source = "host", sensitive = ["token"]')}provider "a" {\n  token = ‸${written}\n}`,
      'sensitive attribute "token" must be exactly env("NAME")',
    ],
  ),
  [
    "a sensitive block",
    `${entry('source = "host", sensitive = ["token"]')}provider "a" {\n  ‸token {\n  }\n}`,
    'sensitive attribute "token" must be exactly env("NAME")',
  ],
  [
    "an expression in a body",
    `${PROVIDERS}provider "a" {\n  x = [1, ‸"a\${b}"]\n}`,
    `the expression "a\${b}" cannot be used`,
  ],
  [
    "env() as a part",
    `${PROVIDERS}provider "a" {\n  x = ‸"Bearer \${env("T")}"\n}`,
    `the expression "Bearer \${env("T")}" cannot be used`,
  ],
  [
    "a computed key in a body",
    `${PROVIDERS}provider "a" {\n  x = { ‸(y) = 1 }\n}`,
    "the expression (y) cannot be used",
  ],
  [
    "an attribute and a block of one name",
    `${PROVIDERS}provider "a" {\n  x = 1\n  ‸x {\n  }\n}`,
    '"x" is an attribute and a block',
  ],
  [
    "blocks with unequal labels",
    `${PROVIDERS}provider "a" {\n  x "l" {\n  }\n  ‸x {\n  }\n}`,
    'all "x" blocks here need 1 label',
  ],
];

const policies: readonly Case[] = [
  ["no action", '‸policy "p" {\n  match = { kind = "resource" }\n}', 'policy needs the attribute "action"'],
  [
    "an unknown action",
    'policy "p" {\n  match = { kind = "resource" }\n  action = ‸"block"\n}',
    'action must be "allow", "ask" or "deny", not "block"',
  ],
  ["no name", '‸policy {\n  match = { kind = "resource" }\n  action = "ask"\n}', "policy takes one label, its name"],
  ["a name's form", 'policy ‸"P" {\n  match = { kind = "resource" }\n  action = "ask"\n}', '"P" is not a valid name'],
  [
    "an unknown field",
    'policy "p" {\n  match = { ‸tool = "x" }\n  action = "ask"\n}',
    'unknown attribute "tool" in policy: match',
  ],
  [
    "a kind that policy does not rule",
    'policy "p" {\n  match = { kind = ‸"interactive" }\n  action = "ask"\n}',
    'match.kind must be "resource" or "data_source", not "interactive"',
  ],
  [
    "a risk",
    'policy "p" {\n  match = { risk = ‸"hgh" }\n  action = "ask"\n}',
    'match.risk must be "read_only", "low", "moderate", "high" or "critical", not "hgh"',
    'did you mean "high"?',
  ],
  [
    "a match that is no object",
    'policy "p" {\n  match = ‸[]\n  action = "ask"\n}',
    "match must be an object, not a list",
  ],
  [
    "a match written as a block",
    'policy "p" {\n  ‸match {\n  }\n  action = "ask"\n}',
    'unexpected block "match" in policy',
  ],
  [
    "a reason",
    'policy "p" {\n  match = { kind = "resource" }\n  action = "ask"\n  reason = ‸1\n}',
    "reason must be a string, not the number 1",
  ],
  [
    "two rules between which nothing chooses",
    'policy "p" {\n  match = { provider = "fs", kind = "resource" }\n  action = "ask"\n}\n‸policy "q" {\n  match = { kind = "resource", provider = "fs" }\n  action = "deny"\n}',
    'policy "q" matches exactly what "p" at agent.hcl:1:1 matches',
  ],
  [
    "two rules that match everything",
    'policy "p" {\n  match = {}\n  action = "ask"\n}\n‸policy "q" {\n  action = "ask"\n}',
    'policy "q" matches exactly what "p" at agent.hcl:1:1 matches',
  ],
];

const settingsCases: readonly Case[] = [
  ["an unknown attribute", settings("‸default_timeout_ms = 1"), 'unknown attribute "default_timeout_ms" in settings'],
  [
    "an attribute misspelt",
    settings("‸strikt = true"),
    'unknown attribute "strikt" in settings',
    'did you mean "strict"?',
  ],
  [
    "the default timeout",
    settings("default_hook_timeout_ms = ‸600001"),
    "default_hook_timeout_ms must be a whole number from 1 to 600000, not 600001",
  ],
  [
    "observe_concurrency",
    settings('observe_concurrency = ‸"parallel"'),
    'observe_concurrency must be "concurrent", "sequential" or "detached", not "parallel"',
  ],
  ["recording", settings("recording = ‸true"), 'recording must be "barrier" or "write-ahead", not true'],
  [
    "on_store_failure",
    settings('on_store_failure = ‸"ignore"'),
    'on_store_failure must be "abort" or "continue", not "ignore"',
  ],
  ["strict", settings('strict = ‸"true"'), 'strict must be true or false, not the string "true"'],
  [
    "max_message_bytes",
    settings("max_message_bytes = ‸67108865"),
    "max_message_bytes must be a whole number from 1 to 67108864, not 67108865",
  ],
  [
    "chain_budget_ms",
    settings("chain_budget_ms = ‸0"),
    "chain_budget_ms must be a whole number from 1 to 2147483647, not 0",
  ],
  ["host_label", settings('host_label = ‸""'), "host_label must be 1 to 256 bytes long"],
  ["redact that is no list", settings('redact = ‸"x"'), 'redact must be a list, not the string "x"'],
  ["a pattern that is no string", settings('redact = ["x", ‸1]'), "redact[1] must be a string, not the number 1"],
  [
    "dev_overrides",
    settings("dev_overrides = ‸[]"),
    "dev_overrides must be an object from address to path, not a list",
  ],
  [
    "an override that is no path",
    settings('dev_overrides = { "github.com/a/b" = ‸1 }'),
    "dev_overrides.github.com/a/b must be a path, not the number 1",
  ],
];

describe("the schema of agent.hcl", () => {
  const cases = [...topLevel, ...hooks, ...providers, ...policies, ...settingsCases];

  it.each(cases)("should point at %s", async (_, marked, message, hint) => {
    const { text, line, col } = unmark(marked);
    const errors = await errorsOf(text);
    expect(errors.map(({ place, message: said }) => ({ ...place, message: said }))).toEqual([
      { file: "agent.hcl", line, col, message },
    ]);
    if (hint !== undefined) expect(errors[0]?.hint).toBe(hint);
    const offending = text.split("\n")[line - 1];
    expect(errors[0]).toMatchObject({ severity: "error", code: "HL_CONFIG", line: offending?.slice(0, 200) });
  });

  it("should say what is wrong with a pattern", async () => {
    const { text, line, col } = unmark('settings {\n  redact = ["ok", ‸"(?<=a)b"]\n}');
    const [error, ...more] = await errorsOf(text);
    expect(more).toEqual([]);
    expect(error).toMatchObject({ place: { line, col } });
    expect(error?.message).toMatch(/^redact\[1\] "\(\?<=a\)b" is no RE2 pattern: /);
  });

  it("should report everything that is wrong in one run, in textual order", async () => {
    const marked = [...hooks.slice(0, 5), ...policies.slice(0, 4)].map(([, text]) => unmark(text).text);
    const text = marked.join("\n").replaceAll(PROVIDERS, "");
    const errors = await errorsOf(text);
    expect(errors.length).toBeGreaterThanOrEqual(9);
    const order = errors.map(({ place }) => place.line * 1000 + place.col);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });
});
