import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer } from "#src/payload/answer.js";
import type { StrayFault } from "#src/subscribers/containment.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hookledger-contained-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Report = {
  readonly answers: readonly Answer[];
  readonly strays: readonly StrayFault[];
  readonly loadError: { readonly code: string; readonly message: string; readonly place: object } | null;
  readonly stderr: string;
};

const OBSERVE = { point: "session-start", mode: "observe" };
const TRANSFORM = { point: "session-start", mode: "transform" };
const VETO = { point: "plan-ready", mode: "veto" };
const script = fileURLToPath(new URL("../support/contained.mjs", import.meta.url));

let count = 0;
/** Runs a program that contains a module with this text. Its stdout must be the report and nothing else, its exit code 7. */
function contained(text: string, calls: readonly object[] = [VETO], timeoutMs = 5_000): Promise<Report> {
  const path = join(folder, `m${count++}.mjs`);
  writeFileSync(path, text);
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [script, path, JSON.stringify(calls), String(timeoutMs)], (error, stdout, stderr) => {
      if (error?.code !== 7) reject(new Error(`exit ${error?.code}: ${stderr}`));
      else resolve({ ...JSON.parse(stdout), stderr });
    });
  });
}

const CRASHED = { class: "failed", error: { category: "PROCESS_CRASHED" } };

describe("a contained module", () => {
  it.each([
    ["process.exit(0)", ""],
    ["exit(0)", "import { exit } from 'node:process';"],
    [
      "exit(0)",
      "import { createRequire } from 'node:module'; const { exit } = createRequire(import.meta.url)('process');",
    ],
    ["process.reallyExit(0)", ""],
    ["process.abort()", ""],
    ["process.kill(process.pid, 'SIGKILL')", ""],
    ["try { process.exit(0) } catch { return 'allow' }", ""],
    ["setTimeout(() => process.exit(0)); await new Promise(() => {})", ""],
    ["await null; process.exit(0)", ""],
    ["return { get decision() { process.exit(0) } }", ""],
  ])("should crash as a subscriber, and end nothing, on %s", async (body, imports) => {
    const report = await contained(`${imports} export default { "plan-ready": { async veto() { ${body} } } }`);
    expect(report.answers).toMatchObject([CRASHED]);
    expect(report.strays).toEqual([]);
  });

  it("should crash only in the call that tried to end the process", async () => {
    const report = await contained(
      `export default {
        "session-start": { observe() { process.exit(0) }, async transform(payload) { await null; await null; return payload } },
        "plan-ready": { veto: () => "deny" },
      }`,
      [OBSERVE, TRANSFORM, VETO],
    );
    expect(report.answers).toMatchObject([CRASHED, { class: "transformed" }, { class: "deny" }]);
  });

  it("should crash in its running calls when what it left behind tries to end the process", async () => {
    const report = await contained(
      `setTimeout(() => process.exit(0), 5);
       export default { "plan-ready": { veto: () => new Promise((resolve) => setTimeout(resolve, 10_000, "allow")) } }`,
    );
    expect(report.answers).toMatchObject([CRASHED]);
  });

  it("should be refused when it ends the process on import", async () => {
    const { loadError, answers } = await contained("process.exit(0); export default {}");
    expect(answers).toEqual([]);
    expect(loadError).toMatchObject({ code: "HL_SUBSCRIBER_LOAD", place: { line: 2 } });
    expect(loadError?.message).toMatch(/tried to end the process: process\.exit\(0\)$/);
  });

  it("should be refused when its import does not end", async () => {
    const { loadError } = await contained("await new Promise(() => {}); export default {}", [VETO], 20);
    expect(loadError?.message).toMatch(/did not end within 20 ms$/);
  });

  it("should neither answer nor end anything with stray faults, which are told", async () => {
    const report = await contained(
      `setTimeout(() => { throw new Error("late exception") });
       export default { "plan-ready": { veto() {
         Promise.reject(new Error("stray rejection"));
         setTimeout(() => { throw new TypeError("stray exception") });
         return "allow";
       } } }`,
    );
    expect(report.answers).toEqual([{ class: "allow" }]);
    expect(report.strays.map(({ kind, subscriber }) => `${kind} ${subscriber}`).sort()).toEqual([
      "exception unruly",
      "exception unruly",
      "rejection unruly",
    ]);
    expect(report.strays.map(({ message }) => message)).toEqual(
      expect.arrayContaining(["late exception", "stray rejection", "TypeError: stray exception"]),
    );
  });

  it("should be told without a name where a fault lost its context", async () => {
    const report = await contained(
      `export default { "plan-ready": { veto() { queueMicrotask(() => { throw null }); return "allow" } } }`,
    );
    expect(report.answers).toEqual([{ class: "allow" }]);
    expect(report.strays).toMatchObject([{ kind: "exception", message: expect.stringMatching(/^nothing was thrown/) }]);
  });

  it("should have no word in the exit code", async () => {
    const report = await contained(
      `process.on("exit", () => { process.exitCode = 0; process.exit(0) });
       process.exitCode = 0;
       setInterval(() => process.exit(0), 1);
       export default { "plan-ready": { veto: () => "allow" } }`,
    );
    expect(report.answers).toHaveLength(1);
    expect(report.strays.length).toBeGreaterThan(0);
  });

  it("should write to stderr where it writes to stdout, on import and in calls", async () => {
    const report = await contained(
      `import process from "node:process";
       console.log("on import");
       export default { "plan-ready": { async veto() {
         console.log("in a call");
         await null;
         process.stdout.write("after a wait\\n");
         console.table([1]);
         return "allow";
       } } }`,
    );
    expect(report.answers).toEqual([{ class: "allow" }]);
    for (const text of ["on import", "in a call", "after a wait"]) expect(report.stderr).toContain(text);
  });
});
