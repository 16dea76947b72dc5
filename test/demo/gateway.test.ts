/** `npm run demo:gateway` as a newcomer runs it, but for the terminal. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cloneWith, contentsOf, Demo, processesWith, temporaryFolder } from "./demo.js";

const SCRIPT = "examples/gateway/run.mjs";
/** ms; a few seconds on a quiet machine */
const BUDGET = 60_000;
const KEY = /sk-[A-Za-z0-9]{20,}/;

describe("the demo of the gateway", () => {
  it(
    "should play the conversation, explain it, and let no key out",
    async () => {
      const temp = temporaryFolder();
      const began = performance.now();
      const demo = new Demo(SCRIPT, temp, ["--keep"]);
      expect([await demo.ended(), demo.stderr]).toEqual([0, ""]);
      expect(performance.now() - began).toBeLessThan(BUDGET);

      const told = [
        "the webhook is answered  200 duplicate",
        "ada sees  Within 30 days; see https://help.example.com/returns for how.",
        "ada sees  nothing",
        "ada sees  All systems are up.",
        "$ npx hookledger queue list",
        "NotSentError: the channel answered 503",
        "ada sees  You said: Are you open on Sunday?",
        "✓ the delivery logger wrote 4 lines: chat-1 to ada",
        "Not to be sent: cancelled by secret-blocker: an API key stands in the reply",
        "To be sent with the content of rewriter.",
        "Claimed by claimer, whose result is the answer.",
        "decided by  secret-blocker",
        "record = replay  14 checked",
        "Everything above was checked while it was told",
      ];
      expect(told.filter((text) => !demo.stdout.includes(text))).toEqual([]);
      expect(demo.stdout).not.toMatch(KEY);
      expect(demo.stdout).not.toContain("\u001b");

      const [name = ""] = readdirSync(temp);
      const folder = join(temp, name, "ledger");
      expect(demo.stdout).toContain(`export HOOKLEDGER_STORE='sqlite:${join(folder, "ledger.db")}'`);
      for (const bytes of contentsOf(folder)) {
        const text = bytes.toString("latin1");
        expect(text).not.toMatch(KEY);
        // Payloads are base64 in there; whole runs of it are decoded.
        for (const [base64] of text.matchAll(/[A-Za-z0-9+/]{24,}={0,2}/g))
          expect(Buffer.from(base64, "base64").toString("latin1")).not.toMatch(/sk-4f0c/);
      }
      expect(processesWith(temp)).toEqual([]);
    },
    BUDGET + 10_000,
  );

  it("should leave no process and no file when it is told to end", async () => {
    const temp = temporaryFolder();
    const demo = new Demo(SCRIPT, temp);
    await demo.said("3  Rewritten");
    if (process.platform === "linux") expect(processesWith(temp).length).toBeGreaterThan(2);
    demo.child.kill("SIGTERM");
    expect(await demo.ended()).toBe(143);
    await expect.poll(() => processesWith(temp), { timeout: 3_000 }).toEqual([]);
    expect(readdirSync(temp)).toEqual([]);
  });

  it("should fail, and say which claim is untrue, when a plugin does something else", async () => {
    const clone = cloneWith("gateway/plugins/claimer.mjs", (text) => text.replace("All systems are up", "Who knows"));
    const temp = temporaryFolder();
    const demo = new Demo(SCRIPT, temp, [], clone);
    expect(await demo.ended()).toBe(1);
    expect(demo.stderr).toContain("the demo went wrong: the customer sees what is meant for customers");
    expect(demo.stderr).toContain("Who knows");
    expect(readdirSync(temp)).toEqual([]);
  });
});
