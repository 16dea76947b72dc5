/** `npm run demo` as a newcomer runs it, but for the terminal. */
import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cloneWith, contentsOf, Demo, processesWith, temporaryFolder } from "./demo.js";

const SCRIPT = "examples/demo/run.mjs";
/** ms; a few seconds on a quiet machine */
const BUDGET = 60_000;
const KEY = /sk-[A-Za-z0-9]{20,}/;

describe("the demo", () => {
  it(
    "should play the session, prove it, and let no key out",
    async () => {
      const temp = temporaryFolder();
      const began = performance.now();
      const demo = new Demo(SCRIPT, temp, ["--keep"]);
      expect([await demo.ended(), demo.stderr]).toEqual([0, ""]);
      expect(performance.now() - began).toBeLessThan(BUDGET);

      const told = [
        "the model got  IMPORT_API_KEY=[key removed]",
        "drop_table  deny   by policy:never_critical",
        "approvals: TIMEOUT",
        "denied at once: PROCESS_CRASHED, ",
        "PROCESS_CRASHED on record",
        "cost-saver: INVALID_RESPONSE, changed immutable field model.id",
        "$ npx hookledger list",
        "Denied because approvals (veto) gave no answer within 600 ms: a timeout, not a refusal.",
        "record = replay  7 checked",
        '"subscriber":"metrics","mode":"observe","category":"PROCESS_CRASHED"',
        "1 diverges  7 checked\n\ndecision  dispatch ",
        "IMPORT_API_KEY= is found; the key that stood behind it is not",
        "Everything above was checked while it was told",
      ];
      expect(told.filter((text) => !demo.stdout.includes(text))).toEqual([]);
      expect(demo.stdout).not.toMatch(KEY);
      expect(demo.stdout).not.toContain("\u001b");

      const [name = ""] = readdirSync(temp);
      expect(demo.stdout).toContain(`export HOOKLEDGER_STORE='sqlite:${join(temp, name, "ledger/ledger.db")}'`);
      const key = KEY.exec(readFileSync(join(temp, name, "workspace/.env"), "utf8"))?.[0] ?? "no key";
      for (const bytes of contentsOf(join(temp, name, "ledger"))) {
        expect(bytes.includes(key)).toBe(false);
        // Payloads are base64 in there; whole runs of it are decoded.
        for (const [base64] of bytes.toString("latin1").matchAll(/[A-Za-z0-9+/]{24,}={0,2}/g))
          expect(Buffer.from(base64, "base64").includes(key)).toBe(false);
      }
      expect(processesWith(temp)).toEqual([]);
    },
    BUDGET + 10_000,
  );

  it.each([
    ["it is told to end", 143, (child: ChildProcess) => child.kill("SIGTERM")],
    ["nobody reads any more", 1, (child: ChildProcess) => child.stdout?.destroy()],
  ])("should leave no process and no file when %s", async (_, exitCode, end) => {
    const temp = temporaryFolder();
    const demo = new Demo(SCRIPT, temp);
    await demo.said("everything but the key");
    if (process.platform === "linux") expect(processesWith(temp).length).toBeGreaterThan(5);
    end(demo.child);
    expect(await demo.ended()).toBe(exitCode);
    // The plugins end because their host has.
    await expect.poll(() => processesWith(temp), { timeout: 3_000 }).toEqual([]);
    expect(readdirSync(temp)).toEqual([]);
  });

  it("should fail, and say which claim is untrue, when a subscriber does something else", async () => {
    const clone = cloneWith("redactor/redactor.mjs", (text) =>
      text.replace("return { ...payload, messages }", "return payload"),
    );
    const temp = temporaryFolder();
    const demo = new Demo(SCRIPT, temp, [], clone);
    expect(await demo.ended()).toBe(1);
    expect(demo.stderr).toContain("the demo went wrong: the model gets the same messages, without the key");
    expect(demo.stdout + demo.stderr).not.toMatch(KEY);
    expect(readdirSync(temp)).toEqual([]);
  });
});
