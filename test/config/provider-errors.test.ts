import { type Case, describeErrors, PROVIDERS } from "./error-cases.js";

function entry(body: string): string {
  return `required_providers {\n  a = { ${body} }\n}\n`;
}

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
    "the kernel's name",
    'required_providers {\n  ‸kernel = { source = "host" }\n}',
    'the provider name "kernel" is the kernel\'s own',
    "choose another",
  ],
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
  [
    "an address that is none, of loopback's form",
    entry('source = ‸"grpc://127.0.0.256:1"'),
    'plain TCP to "127.0.0.256:1" would carry payloads unprotected',
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

describeErrors("a provider", providers);
