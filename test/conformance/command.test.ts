import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { conformance } from "#src/cli/conformance.js";
import { folderWith, Running, run } from "../support/cli.js";
import { runCommand } from "../support/run-command.js";
import { startPeer, UNIMPLEMENTED, wellBehaved } from "./peer.js";

const DIST = new URL("../../dist/", import.meta.url);
const MAIN = fileURLToPath(new URL("cli/main.js", DIST));

const PICKY = `export default { "plan-ready": { veto({ plan }) {
  if ((plan?.turnId.length ?? 0) > 2) throw new Error("picky");
  return "allow";
} } };`;

/** A line that the command printed, typed into a shell. */
async function typed(command: string, cwd: string) {
  const child = spawn("sh", ["-c", `hookledger() { "${process.execPath}" "${MAIN}" "$@"; }; ${command}`], { cwd });
  let stdout = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  const [code] = await once(child, "close");
  return { code, stdout };
}

async function documentOf(folder: string, ...args: readonly string[]) {
  const ran = await run(["conformance", "--json", "--seed", "7", ...args], { cwd: folder });
  return { ...ran, document: JSON.parse(ran.stdout) };
}

type Row = { check: string; ok: boolean; message: string; payloadFile: string; reproduce: string };

function failed(document: { checks: readonly Row[] }): Row {
  const [first, ...more] = document.checks.filter(({ ok }) => !ok);
  if (first === undefined || more.length > 0) throw new Error(`${more.length + 1} checks failed`);
  return first;
}

describe("hookledger conformance", () => {
  it("should pass a subscriber, and say what it looked at", async () => {
    const folder = folderWith({
      "good.mjs": 'export default { "plan-ready": { veto: () => "allow", observe() {} } };',
    });
    const { code, document, stderr } = await documentOf(folder, "module:./good.mjs", "--runs", "10");
    expect([code, stderr]).toEqual([0, ""]);
    expect(document).toMatchObject({
      source: "module:./good.mjs",
      ok: true,
      seed: 7,
      runs: 10,
      served: [{ point: "plan-ready", modes: ["observe", "veto"] }],
    });
    expect(document.checks[0]).toEqual({ point: "plan-ready", mode: "observe", check: "answer", ok: true, runs: 10 });
    expect(document.checks).toHaveLength(14);
    expect(existsSync(join(folder, ".hookledger"))).toBe(false);
  });

  it("should print one command that reproduces what failed, until it is mended", async () => {
    const folder = folderWith({ "it's picky.mjs": PICKY });
    const ran = await run(["conformance", "module:./it's picky.mjs", "--runs", "50", "--out", "out put"], {
      cwd: folder,
    });
    expect(ran.code).toBe(5);
    expect(ran.stdout).toContain("1 of 7 checks fails  module:./it's picky.mjs, seed ");
    expect(ran.stdout).toContain("  │ VETO_FAILED: picky\n");
    const command = /reproduce {2}(.+)/.exec(ran.stdout)?.[1] ?? "";
    expect(command).toContain("--payload 'out put/plan-ready-veto-answer.json'");
    const again = await typed(`${command} --json`, folder);
    expect([again.code, failed(JSON.parse(again.stdout)).message]).toEqual([5, "VETO_FAILED: picky"]);
    writeFileSync(join(folder, "it's picky.mjs"), PICKY.replace("> 2", "> 2000"));
    expect((await typed(command, folder)).code).toBe(0);
  });

  it("should write what fails as small as it can, and never over a file", async () => {
    const folder = folderWith({ "picky.mjs": PICKY });
    const args = ["module:./picky.mjs", "--check", "answer", "--runs", "50"];
    const { payloadFile } = failed((await documentOf(folder, ...args)).document);
    expect(payloadFile).toBe(".hookledger/conformance/plan-ready-veto-answer.json");
    const text = readFileSync(join(folder, payloadFile), "utf8");
    expect(JSON.parse(text).planReady.plan.turnId).toHaveLength(3);
    expect(failed((await documentOf(folder, ...args)).document).payloadFile).toBe(
      ".hookledger/conformance/plan-ready-veto-answer-2.json",
    );
    expect(readFileSync(join(folder, payloadFile), "utf8")).toBe(text);
  });

  it("should keep what JSON cannot say as bytes", async () => {
    const folder = folderWith({
      "old.mjs": 'export default { "plan-ready": { transform: ({ plan }) => ({ plan }) } };',
    });
    const { document } = await documentOf(folder, "module:./old.mjs", "--check", "unknown-fields");
    const { payloadFile, reproduce } = failed(document);
    expect(payloadFile).toMatch(/\.bin$/);
    expect((await typed(reproduce, folder)).code).toBe(5);
  });

  it("should reproduce what a peer does to bytes that are no request", async () => {
    const source = await startPeer((request) => {
      if (request === null) return "drop";
      return request.mode === "veto" && request.payload.point === "plan-ready" ? wellBehaved(request) : UNIMPLEMENTED;
    });
    const folder = folderWith({});
    const { code, document } = await documentOf(folder, source, "--runs", "10");
    expect([code, document.served]).toEqual([5, [{ point: "plan-ready", modes: ["veto"] }]]);
    const { check, reproduce, message } = failed(document);
    expect([check, message]).toEqual(["hostile", expect.stringContaining("it broke off")]);
    expect((await typed(reproduce, folder)).code).toBe(5);
  });

  it("should reproduce what fails only now and then", async () => {
    const folder = folderWith({
      "flaky.mjs": `let n = 0; export default { "plan-ready": { veto() { if (n++ % 5 === 4) throw new Error("no"); return "allow"; } } };`,
    });
    const { document } = await documentOf(folder, "module:./flaky.mjs", "--check", "answer", "--runs", "20");
    const { message, reproduce } = failed(document);
    expect(message).toContain("not every time");
    expect((await typed(reproduce, folder)).code).toBe(5);
  });

  it.each([
    ["hangs", "await new Promise(() => {})", "no answer within 100 ms"],
    ["blocks its thread", "for (;;);", "it blocked its thread"],
    ["ends its process", "process.exit(0)", "the module tried to end the process"],
    ["prints without an end", 'for (let n = 0; n < 3000; n++) console.log("x".repeat(999)); throw new Error("e")', "e"],
  ])("should come to an end with one that %s", async (_, body, message) => {
    const folder = folderWith({ "bad.mjs": `export default { "plan-ready": { async veto() { ${body} } } };` });
    const args = ["module:./bad.mjs", "--runs", "3", "--timeout", "100ms", "--max-time", "1500ms"];
    const { code, document, stderr } = await documentOf(folder, ...args);
    expect([code, stderr]).toEqual([5, ""]);
    expect(failed(document)).toMatchObject({ check: "answer", message: expect.stringContaining(message) });
  });

  it("should check a plugin with its configuration, and end it on SIGINT", async () => {
    const folder = folderWith({
      "plugin.mjs": `#!${process.execPath}
import { servePlugin } from ${JSON.stringify(pathToFileURL(fileURLToPath(new URL("plugin/index.js", DIST))).href)};
await servePlugin({ name: "picky", version: "1.0.0", hooks: { "plan-ready": { veto({ plan }, ctx) {
  ctx.log.info("here is " + process.pid + ".");
  if (plan?.turnId.length > ctx.config.most) process.exit(3);
  return "allow";
} } } });`,
      "config.json": '{"most": 8}',
      "lenient.json": '{"most": 1000000}',
    });
    await typed("chmod +x plugin.mjs", folder);
    const args = [
      "./plugin.mjs",
      "--provider-config",
      "config.json",
      "--runs",
      "20",
      "--check",
      "answer,hostile",
      "--max-time",
      "4s",
    ];
    const { code, document } = await documentOf(folder, ...args);
    expect([code, document.served]).toEqual([5, [{ point: "plan-ready", modes: ["veto"] }]]);
    const { check, message, reproduce } = failed(document);
    expect([check, message]).toEqual(["answer", "PROCESS_CRASHED: the plugin exited with code 3"]);
    expect((await typed(reproduce, folder)).code).toBe(5);

    const lenient = ["./plugin.mjs", "--provider-config", "lenient.json", "--runs", "1000000", "--verbose"];
    const running = new Running(["conformance", ...lenient], { cwd: folder });
    await running.sees("stderr", "here is ");
    running.kill("SIGINT");
    const ended = await running.ended;
    expect(ended.code).toBe(130);
    const pid = Number(/here is (\d+)/.exec(ended.stderr)?.[1]);
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  it("should fail a plugin that changes what is not its own by that check, and by no other", async () => {
    const folder = folderWith({
      "plugin.mjs": `#!${process.execPath}
import { servePlugin } from ${JSON.stringify(pathToFileURL(fileURLToPath(new URL("plugin/index.js", DIST))).href)};
await servePlugin({ name: "greedy", version: "1.0.0", hooks: { "pre-model-call": {
  transform: (payload) => ({ ...payload, model: { ...payload.model, id: "mine" } }),
} } });`,
    });
    await typed("chmod +x plugin.mjs", folder);
    const { document } = await documentOf(folder, "./plugin.mjs", "--runs", "5", "--check", "answer,identity");
    expect(failed(document)).toMatchObject({ check: "identity", message: expect.stringContaining("model.id") });
  });

  it("should check a provider as it is configured", async () => {
    const folder = folderWith({
      "gate.mjs": 'export default { "plan-ready": { veto(_, { config }) { return config.say; } } };',
      "agent.hcl": [
        'required_providers { gate = { source = "module:./gate.mjs" } }',
        'provider "gate" { say = "maybe" }',
        'hook "plan-ready" {\n  provider = "gate"\n  mode = "veto"\n}',
      ].join("\n"),
    });
    const { code, document } = await documentOf(folder, "--provider", "gate", "--check", "answer");
    expect([code, document.source]).toEqual([5, "module:./gate.mjs"]);
    expect((await typed(failed(document).reproduce, folder)).code).toBe(5);
  });

  it("should tell no secret that a provider is configured with, not even its beginning", async () => {
    const folder = folderWith({
      gate: '#!/bin/sh\necho "$(printf %190s)$TOKEN" >&2\nexit 1\n',
      "agent.hcl": [
        'required_providers { gate = { source = "./gate", env = ["TOKEN"] } }',
        'provider "gate" { token = env("TOKEN") }',
      ].join("\n"),
    });
    await typed("chmod +x gate", folder);
    const args = ["conformance", "--json", "--verbose", "--provider", "gate"];
    const { code, stdout, stderr } = await run(args, { cwd: folder, env: { TOKEN: "canary-4d1f0b77c2" } });
    expect([code, JSON.parse(stdout).error.code]).toEqual([2, "HL_PLUGIN_START"]);
    expect(stdout + stderr).not.toContain("canary");
  });
});

describe("what conformance is asked", () => {
  const module = "module:./empty.mjs";

  it.each<[says: string, args: readonly string[], code: number, error: string]>([
    ["neither a source nor a provider", [], 2, "HL_USAGE"],
    ["both a source and a provider", [module, "--provider", "x"], 2, "HL_USAGE"],
    ["no source", ["nonsense"], 2, "HL_USAGE"],
    ["a source with a template in it", [`module:./\${x}.mjs`], 2, "HL_USAGE"],
    ["a host function", ["host"], 2, "HL_SOURCE_UNSUPPORTED"],
    ["a module that is not there", ["module:../none.mjs"], 2, "HL_SUBSCRIBER_LOAD"],
    ["an address where nobody is", ["grpc+unix:///nowhere/none.sock"], 2, "HL_SUBSCRIBER_LOAD"],
    ["an address beyond this machine in the open", ["grpc://example.org:1"], 2, "HL_USAGE"],
    ["an unknown point", [module, "--point", "nowhere"], 2, "HL_USAGE"],
    ["an unknown mode", [module, "--mode", "policy"], 2, "HL_USAGE"],
    ["a veto where none can stand", [module, "--point", "session-end", "--mode", "veto"], 2, "HL_USAGE"],
    ["an unknown check", [module, "--check", "answer,luck"], 2, "HL_USAGE"],
    ["no check that is left", [module, "--check", "answer", "--skip", "answer"], 2, "HL_USAGE"],
    ["no runs", [module, "--runs", "0"], 2, "HL_USAGE"],
    ["a seed that is none", [module, "--seed", "x"], 2, "HL_USAGE"],
    ["no time", [module, "--timeout", "0s"], 2, "HL_USAGE"],
    ["a payload without a check", [module, "--payload", "x.json"], 2, "HL_USAGE"],
    ["a configuration that is not there", ["--config", "/nowhere.hcl", "--provider", "x"], 2, "HL_CONFIG"],
    ["a body for an address", ["grpc+unix:///x.sock", "--provider-config", "x.json"], 2, "HL_USAGE"],
    ["a body that is not there", [module, "--provider-config", "/nowhere.json"], 2, "HL_USAGE"],
  ])("should refuse %s", async (_, args, code, error) => {
    const ran = await runCommand(conformance, ["conformance", ...args]);
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toMatch(/^hookledger: .*\n/);
    expect(ran.stderr).toContain(`(${error})\n`);
  });

  it("should find nothing to check in a module that has no handler, or not that one", async () => {
    const folder = folderWith({
      "empty.mjs": "export default {};",
      "end.mjs": 'export default { "session-end": { observe() {} } };',
    });
    const empty = await runCommand(conformance, ["conformance", `module:${folder}/empty.mjs`]);
    expect([empty.code, empty.stderr]).toEqual([7, expect.stringContaining("(HL_NOT_FOUND)\n  It has no handler.")]);
    const end = await runCommand(conformance, ["conformance", `module:${folder}/end.mjs`, "--mode", "transform"]);
    expect([end.code, end.stderr]).toEqual([7, expect.stringContaining("It may serve session-end.observe.")]);
  });

  it("should refuse a payload of another point, and one that cannot be read", async () => {
    const folder = folderWith({
      "end.mjs": 'export default { "session-end": { observe() {} } };',
      "start.json": '{"sessionStart":{}}',
      "broken.json": '{"sessionEnd":',
    });
    const at = ["--point", "session-end", "--mode", "observe", "--check", "answer"];
    for (const [file, error] of [
      ["start.json", "HL_USAGE"],
      ["broken.json", "HL_PAYLOAD"],
      ["none.json", "HL_PAYLOAD_UNREADABLE"],
    ]) {
      const ran = await runCommand(conformance, [
        "conformance",
        `module:${folder}/end.mjs`,
        ...at,
        "--payload",
        `${folder}/${file}`,
      ]);
      expect([ran.code, ran.stderr]).toEqual([2, expect.stringContaining(`(${error})`)]);
    }
    expect(readdirSync(folder)).toHaveLength(3);
  });
});
