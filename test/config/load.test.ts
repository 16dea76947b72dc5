import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig, parseConfig } from "#src/config/load.js";
import { brief, everything } from "./marked.js";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "hookledger-config-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, content: string | Uint8Array = ""): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

function link(to: string, name: string): string {
  const path = join(folder, name);
  symlinkSync(join(folder, to), path);
  return path;
}

function hook(id: string): string {
  return `hook "session-end" {\n  provider = "a"\n  mode = "observe"\n  id = "${id}"\n}\n`;
}

const DECLARED = 'required_providers {\n  a = { source = "host" }\n}\n';

describe("loadConfig", () => {
  it("should read one file, whatever its name", async () => {
    const path = write("anything.conf", DECLARED + hook("x"));
    const result = await loadConfig(path);
    expect(result).toMatchObject({ ok: true, warnings: [], config: { files: [path] } });
    if (result.ok) expect(result.config.hooks[0]?.place).toEqual({ file: path, line: 4, col: 1 });
  });

  it("should read the .hcl files of a folder in the order of their names' bytes, not of folders in it", async () => {
    write("b.hcl", hook("b1") + hook("b2"));
    write("a.hcl", hook("a"));
    write("B.hcl", hook("upper"));
    write("10.hcl", hook("ten"));
    write("9.hcl", hook("nine"));
    write("é.hcl", hook("accent"));
    write("\u{1f600}.hcl", hook("emoji"));
    write("\uff5e.hcl", hook("wide"));
    write("z.hcl", DECLARED);
    write("notes.txt", "no hcl");
    write(".#b.hcl", "a lock file");
    write("sub/c.hcl", "no = hcl = here");
    const result = await loadConfig(folder);
    expect(result.ok ? [] : brief(result.errors)).toEqual([]);
    if (!result.ok) return;
    expect(result.config.hooks.map(({ id }) => id)).toEqual([
      "ten",
      "nine",
      "upper",
      "a",
      "b1",
      "b2",
      "accent",
      "wide",
      "emoji",
    ]);
    expect(result.config.files.map((file) => file.slice(folder.length + 1))).toEqual([
      "10.hcl",
      "9.hcl",
      "B.hcl",
      "a.hcl",
      "b.hcl",
      "z.hcl",
      "é.hcl",
      "\uff5e.hcl",
      "\u{1f600}.hcl",
    ]);
  });

  it.each([
    ["a file that is not there", () => join(folder, "none.hcl"), /none\.hcl does not exist$/],
    ["a folder without .hcl files", () => dirname(write("readme.md")), /holds no \.hcl file$/],
    ["a folder that is named like a file", () => dirname(dirname(write("x.hcl/readme.md"))), /x\.hcl is no file$/],
    ["a path through a file", () => join(write("a.hcl"), "b.hcl"), /cannot be read \(ENOTDIR\)$/],
    ["a dangling link", () => dirname(link("gone", "l.hcl")), /l\.hcl does not exist$/],
    ["a path with a NUL", () => "a\0b", /cannot be read \(ERR_INVALID_ARG_VALUE\)$/],
  ])("should refuse %s", async (_, path, message) => {
    const result = await loadConfig(path());
    expect(result).toMatchObject({
      ok: false,
      warnings: [],
      errors: [{ code: "HL_CONFIG_UNREADABLE", severity: "error", place: { line: 1, col: 1 } }],
    });
    if (!result.ok) expect(result.errors[0]?.message).toMatch(message);
  });

  it("should refuse a file over a mebibyte and still report what is wrong with the others", async () => {
    write("a.hcl", "#".repeat(1024 * 1024 + 1));
    write("b.hcl", "x = 1\n");
    write("c.hcl", Uint8Array.of(0x23, 0xff));
    const result = await loadConfig(folder);
    expect(
      result.ok
        ? []
        : result.errors.map(
            ({ code, place, message }) => `${place.file.slice(-5)}:${place.line}:${place.col} ${code} ${message}`,
          ),
    ).toEqual([
      "a.hcl:1:1 HL_LIMIT_CONFIG larger than 1 MiB",
      'b.hcl:1:1 HL_CONFIG unknown attribute "x"',
      "c.hcl:1:2 HL_CONFIG not UTF-8",
    ]);
  });

  it("should take paths relative to the file that holds them, and find out what is there", async () => {
    write("sub/notes.mjs");
    write(
      "sub/agent.hcl",
      `required_providers {\n  a = { source = "module:./notes.mjs" }\n  b = { source = "./plugin" }\n}\n${hook("x")}hook "session-end" {\n  provider = "b"\n  mode = "observe"\n}`,
    );
    chmodSync(write("sub/plugin"), 0o755);
    const result = await loadConfig(join(folder, "sub", "agent.hcl"));
    expect(result.ok ? result.warnings : result.errors).toEqual([]);
    if (!result.ok) return;
    expect(result.config.providers.get("a")?.source).toEqual({
      kind: "module",
      path: join(folder, "sub", "notes.mjs"),
    });
    expect(result.config.providers.get("b")?.source).toMatchObject({ path: join(folder, "sub", "plugin") });
  });

  it("should contain relative paths after following links", async () => {
    write("outside.mjs");
    write("conf/inside.mjs");
    link("outside.mjs", "conf/out.mjs");
    link("conf/inside.mjs", "conf/in.mjs");
    link("conf", "linked");
    write(
      "conf/agent.hcl",
      `required_providers {\n  a = { source = "module:./out.mjs" }\n  b = { source = "module:./in.mjs" }\n}\n${hook("x")}${hook("y").replace('"a"', '"b"')}`,
    );
    const result = await loadConfig(join(folder, "linked", "agent.hcl"));
    expect(result.ok ? [] : brief(result.errors)).toEqual(['2:18 "./out.mjs" leaves the folder of the configuration']);
    write("conf/agent.hcl", `required_providers {\n  a = { source = "module:./in.mjs" }\n}\n${hook("x")}`);
    const linked = await loadConfig(join(folder, "linked", "agent.hcl"));
    expect(linked.ok ? linked.config.providers.get("a")?.source : linked.errors).toEqual({
      kind: "module",
      path: join(folder, "conf", "inside.mjs"),
    });
  });

  it("should find an installed plugin, and an override before it", async () => {
    const text = (settings: string) =>
      `required_providers {\n  a = { source = "github.com/acme/a" }\n}\n${hook("x")}${settings}`;
    chmodSync(write(".agent/plugins/a"), 0o755);
    chmodSync(write("build/a"), 0o755);
    const source = async (settings: string) => {
      const result = await loadConfig(write("agent.hcl", text(settings)));
      return result.ok ? result.config.providers.get("a")?.source : result.errors;
    };
    expect(await source("")).toMatchObject({ kind: "forge", path: join(folder, ".agent/plugins/a") });
    expect(await source('settings {\n  dev_overrides = { "github.com/acme/a" = "./build/a" }\n}')).toMatchObject({
      path: join(folder, "build/a"),
    });
  });

  it("should run nothing that a configuration names", async () => {
    const key = `hookledger-config-test-${process.pid}`;
    write("evil.mjs", `globalThis[${JSON.stringify(key)}] = true;`);
    const result = await loadConfig(
      write("agent.hcl", `required_providers {\n  a = { source = "module:./evil.mjs" }\n}\n${hook("x")}`),
    );
    expect(result.ok).toBe(true);
    expect(globalThis).not.toHaveProperty(key);
  });

  it("should leave no name on the global object", async () => {
    const before = Object.getOwnPropertyNames(globalThis);
    await loadConfig(write("agent.hcl", "settings {\n}\n"));
    expect(Object.getOwnPropertyNames(globalThis)).toEqual(before);
  });
});

describe("parseConfig", () => {
  it("should order files by base name wherever they lie, and offsets within", async () => {
    const files = ["z/a.hcl", "a/c.hcl", "m/b.hcl"].map((name, i) => ({ name, text: hook(`x${i}`) }));
    const result = await parseConfig([...files, { name: "d.hcl", text: DECLARED }], { probe: everything });
    expect(result.ok ? result.config.hooks.map(({ id }) => id) : result.errors).toEqual(["x0", "x2", "x1"]);
  });

  it("should see duplicates across files", async () => {
    const policy = (name: string) => `policy "${name}" {\n  match = { kind = "resource" }\n  action = "ask"\n}\n`;
    const result = await parseConfig([
      { name: "b.hcl", text: `settings {\n}\n${DECLARED}${policy("q")}${hook("x")}` },
      { name: "a.hcl", text: `settings {\n}\n${DECLARED}${policy("p")}${hook("x")}` },
    ]);
    expect(
      result.ok ? [] : result.errors.map(({ place, message }) => `${place.file}:${place.line}:${place.col} ${message}`),
    ).toEqual([
      "b.hcl:1:1 a second settings block; first at a.hcl:1:1",
      'b.hcl:4:3 provider "a" is declared twice; first at a.hcl:4:3',
      'b.hcl:6:1 policy "q" matches exactly what "p" at a.hcl:6:1 matches',
      'b.hcl:13:8 provider "a" has two hooks with the id "x" at session-end; first at a.hcl:10:1',
    ]);
  });
});
