import { describe, expect, it } from "vitest";
import { fileSystem } from "#src/config/file-probe.js";
import { brief, everything, parse, unmark } from "./marked.js";

async function warningsOf(text: string, probe = everything) {
  const result = await parse(text, { probe });
  expect(result.ok ? [] : result.errors).toEqual([]);
  return result.warnings;
}

const HOST = 'required_providers {\n  a = { source = "host" }\n  b = { source = "host" }\n}\n';
const BOTH =
  'hook "plan-ready" {\n  provider = "a"\n  mode = "observe"\n}\nhook "plan-ready" {\n  provider = "b"\n  mode = "observe"\n}\n';
const USED = 'hook "session-end" {\n  provider = "a"\n  mode = "observe"\n}\n';

describe("warnings", () => {
  it.each([
    ["an empty match", 'policy "p" {\n  match = ‸{}\n  action = "ask"\n}', "an empty match applies to every item"],
    ["an absent match", '‸policy "p" {\n  action = "ask"\n}', "an empty match applies to every item"],
    [
      "a provider without a hook",
      'required_providers {\n  ‸a = { source = "host" }\n}',
      'provider "a" has no hook: it is neither started nor called',
    ],
    [
      "a version of a host function",
      `required_providers {\n  a = { source = "host", version = ‸"~> 1.0" }\n}\n${USED}`,
      'provider "a": there is no version to compare "~> 1.0" to',
    ],
    [
      "a version of a module",
      `required_providers {\n  a = { source = "module:./a.mjs", version = ‸"1.2.3" }\n}\n${USED}`,
      'provider "a": there is no version to compare "1.2.3" to',
    ],
    [
      "a sensitive attribute that is not set",
      `required_providers {\n  a = { source = "host", sensitive = ‸["tokn"] }\n}\nprovider "a" {\n  token = env("T")\n}\n${USED}`,
      'sensitive attribute "tokn" is not set',
    ],
    [
      "a transform behind a veto",
      `${HOST}hook "pre-tool-call" {\n  provider = "a"\n  mode = "veto"\n}\n‸hook "pre-tool-call" {\n  provider = "b"\n  mode = "transform"\n}`,
      "this transform runs after the veto at agent.hcl:5:1, which then judged another payload",
    ],
  ])("should tell %s", async (_, marked, message) => {
    const { text, line, col } = unmark(marked);
    const warnings = await warningsOf(text);
    expect(brief(warnings)).toEqual([`${line}:${col} ${message}`]);
    expect(warnings[0]).toMatchObject({ severity: "warning", line: text.split("\n")[line - 1] });
  });

  it.each([
    ["a plugin", `required_providers {\n  a = { source = "./plugins/a", version = "~> 1.0" }\n}\n${USED}`],
    ["an installed git-forge address", `required_providers {\n  a = { source = "github.com/acme/a" }\n}\n${USED}`],
  ])("should have nothing to say of %s that can be started", async (_, text) => {
    expect(await warningsOf(text)).toEqual([]);
  });

  it("should say how to install a git-forge address that is found nowhere", async () => {
    const nothing = { realPath: () => undefined, isFile: () => false, isExecutable: () => false };
    const warnings = await warningsOf(
      `required_providers {\n  a = { source = "github.com/acme/a" }\n}\n${USED}`,
      nothing,
    );
    expect(warnings.map(({ code, message }) => `${code} ${message}`)).toEqual([
      'HL_SOURCE_UNSUPPORTED "github.com/acme/a" is not installed',
    ]);
    expect(warnings[0]?.hint).toBe(
      'put its executable at .agent/plugins/a, or name a local build in settings { dev_overrides = { "github.com/acme/a" = "./build" } }',
    );
  });

  it("should tell files that are missing, no file or not executable", async () => {
    const probe = {
      realPath: (path: string) => (path.endsWith("missing.mjs") ? undefined : path),
      isFile: (path: string) => !path.endsWith("folder.mjs"),
      isExecutable: () => false,
    };
    const text = `required_providers {
  a = { source = "module:./missing.mjs" }
  b = { source = "module:./folder.mjs" }
  c = { source = "./plugin" }
  d = { source = "grpcs://h:1", tls = { ca = "./missing.mjs" } }
}
${["a", "b", "c", "d"].map((name) => `hook "session-end" {\n  provider = "${name}"\n  mode = "observe"\n}\n`).join("")}`;
    expect(brief(await warningsOf(text, probe))).toEqual([
      '2:18 "./missing.mjs" does not exist',
      '3:18 "./folder.mjs" is not a file',
      '4:18 "./plugin" is not executable',
      '5:46 "./missing.mjs" does not exist',
    ]);
  });

  it.each([
    [
      "a transform before a veto",
      `${HOST}hook "plan-ready" {\n  provider = "a"\n  mode = "transform"\n}\nhook "plan-ready" {\n  provider = "b"\n  mode = "veto"\n}`,
    ],
    [
      "a transform at another point",
      `${HOST}hook "plan-ready" {\n  provider = "a"\n  mode = "veto"\n}\nhook "pre-model-call" {\n  provider = "b"\n  mode = "transform"\n}`,
    ],
    [
      "a veto that is a shadow",
      `${HOST}hook "plan-ready" {\n  provider = "a"\n  mode = "veto"\n  shadow = true\n}\nhook "plan-ready" {\n  provider = "b"\n  mode = "transform"\n}`,
    ],
    [
      "one provider at a point with and without an id",
      `${HOST}${BOTH}hook "plan-ready" {\n  provider = "a"\n  mode = "observe"\n  id = "x"\n}`,
    ],
    ["one id at two points", `${HOST}${BOTH}hook "post-apply" {\n  provider = "a"\n  mode = "observe"\n}`],
    [
      "loopback addresses",
      ["localhost:1", "127.0.0.1:1", "127.9.9.9:65535", "[::1]:1"]
        .map(
          (target, i) =>
            `required_providers {\n  p${i} = { source = "grpc://${target}" }\n}\nhook "session-end" {\n  provider = "p${i}"\n  mode = "observe"\n}\n`,
        )
        .join(""),
    ],
    [
      "an address that may be insecure",
      `required_providers {\n  a = { source = "grpc://10.0.0.1:1", insecure = true }\n}\n${USED}`,
    ],
    [
      "a version of an address",
      `required_providers {\n  a = { source = "grpcs://h:1", version = ">= 1.0, < 2.0" }\n}\n${USED}`,
    ],
    ["an absolute path elsewhere", `required_providers {\n  a = { source = "module:/opt/a.cjs" }\n}\n${USED}`],
    [
      "overlapping rules of different specificity",
      'policy "p" {\n  match = { kind = "resource" }\n  action = "ask"\n}\npolicy "q" {\n  match = { kind = "resource", risk = "low" }\n  action = "allow"\n}',
    ],
    [
      "rules that differ in a value",
      'policy "p" {\n  match = { kind = "resource" }\n  action = "ask"\n}\npolicy "q" {\n  match = { kind = "data_source" }\n  action = "ask"\n}',
    ],
    ["nothing at all", ""],
  ])("should accept %s in silence", async (_, text) => {
    expect(brief(await warningsOf(text))).toEqual([]);
  });

  it("should look for files in the real file system unless told otherwise", async () => {
    const text = `required_providers {\n  a = { source = "module:./does-not-exist.mjs" }\n}\n${USED}`;
    expect(brief(await warningsOf(text, fileSystem))).toEqual(['2:18 "./does-not-exist.mjs" does not exist']);
  });
});
