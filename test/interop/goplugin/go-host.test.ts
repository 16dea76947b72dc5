import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HookMode } from "#src/core/events.js";
import { admitResponse } from "#src/payload/admission.js";
import type { Answer } from "#src/payload/answer.js";
import { payloadFromView } from "#src/payload/payload.js";
import { UNKNOWN_FIELDS } from "#src/payload/view.js";
import { type CallOptions, GoHost, type GoHostOptions, type Report } from "./go-host.js";
import { carrying, isAlive, mark, messagesOf, running, temporaryFolder, textOf } from "./lives.js";

const PLUGIN = fileURLToPath(new URL("node-plugin.mjs", import.meta.url));
const REDACTOR = fileURLToPath(new URL("../../../examples/redactor/redactor.mjs", import.meta.url));
/** ms that a plugin may live on without its host */
const ORPHANED = 3_000;

async function begin(options: GoHostOptions, ...args: readonly string[]) {
  const host = new GoHost([PLUGIN, ...args], options);
  const { event, error, pid = 0, text = "" } = await host.up;
  if (event !== "started") throw new Error(error);
  return { host, pid, socket: text };
}

/** The answer as our own kernel would admit it. */
async function answered(host: GoHost, mode: HookMode, order: string, options: CallOptions = {}): Promise<Answer> {
  const payload = options.payload ?? payloadFromView(carrying(mode, order));
  const report = await host.call(mode, order, { ...options, payload });
  if (report.code !== undefined) throw new Error(`${report.code}: ${report.error}`);
  return admitResponse(mode, payload, Buffer.from(report.response ?? "", "base64"));
}

function refusal({ code, error }: Report): string {
  return `${code}: ${error}`;
}

describe.each([false, true])("a genuine Go host of our Node plugin, AutoMTLS %s", (autoMtls) => {
  it("should get what each mode asks for", async () => {
    const { host } = await begin({ autoMtls });
    expect(await answered(host, "observe", "default")).toEqual({ class: "ack" });
    expect(await answered(host, "veto", "read_file")).toEqual({ class: "allow" });
    expect(await answered(host, "veto", "deny it")).toEqual({ class: "deny" });
    expect(textOf(await answered(host, "transform", "upper"))).toBe("UPPER");
    expect(textOf(await answered(host, "transform", "as it is"))).toBe("as it is");
    expect((await host.call("veto", "deny 100 % – nein\n")).text).toBe("100%20%25%20%E2%80%93%20nein%0A");
  });

  it("should keep what it does not know", async () => {
    const { host } = await begin({ autoMtls });
    const unknown = Uint8Array.of(0xa0, 0x38, 7);
    const payload = payloadFromView({
      preModelCall: {
        messages: [{ role: "ROLE_USER", content: [{ text: { text: "upper" } }], id: "m-1", [UNKNOWN_FIELDS]: unknown }],
      },
    });
    expect(messagesOf(await answered(host, "transform", "", { payload }))[0]).toMatchObject({
      [UNKNOWN_FIELDS]: unknown,
    });
  });

  it("should get a thrown error as a status, and nonsense as an answer without an outcome", async () => {
    const { host } = await begin({ autoMtls });
    for (const mode of ["transform", "veto"] as const) {
      expect(refusal(await host.call(mode, "fail for 100 % want of a näil, 50%"))).toBe(
        "Unknown: for 100 % want of a näil, 50%",
      );
      expect(await answered(host, mode, "unset")).toMatchObject({ class: "invalid" });
    }
    const unserved = await host.call("veto", "", {
      payload: payloadFromView({ planReady: { plan: { turnId: "t-1" } } }),
    });
    expect(unserved.code).toBeDefined();
  });

  it("should see its deadlines and its cancelling honoured", async () => {
    const { host } = await begin({ autoMtls, stdio: true });
    const late = await host.call("veto", "hang late", { timeoutMs: 200 });
    expect(late.code).toBe("DeadlineExceeded");
    expect(late.ms).toBeLessThan(1_000);
    const cancelled = await host.call("transform", "hang cancelled", { cancelMs: 100 });
    expect(cancelled.code).toBe("Canceled");
    const stderr = () => host.reports.filter(({ event }) => event === "stderr").map(({ text }) => text);
    await expect.poll(stderr).toEqual(expect.arrayContaining(["aborted: hang late", "aborted: hang cancelled"]));
    expect(await answered(host, "veto", "read_file")).toEqual({ class: "allow" });
  });

  it("should hand on the call's context", async () => {
    const env = { HOOKLEDGER_PROVIDER_CONFIG: '{"depth":{"of":[1]}}' };
    const { host } = await begin({ autoMtls, env });
    const options = { subscriptionId: "first", timeoutMs: 5_000 };
    const context = JSON.parse(textOf(await answered(host, "transform", "context", options)));
    expect(context).toEqual({
      point: "pre-model-call",
      mode: "transform",
      subscriptionId: "first",
      remaining: expect.any(Number),
      config: { depth: { of: [1] } },
    });
    expect(context.remaining).toBeGreaterThan(4_000);
    expect(context.remaining).toBeLessThanOrEqual(5_000);
  });

  it("should find it healthy and described, however others come and go", async () => {
    const { host } = await begin({ autoMtls });
    for (let i = 0; i < 10; i += 1) expect((await host.order("drop")).error).toBeUndefined();
    expect((await host.order("ping")).code).toBeUndefined();
    const points = ["SESSION_START", "PRE_MODEL_CALL", "PRE_TOOL_CALL"].map(
      (point) => `supported_hook_points:HOOK_POINT_${point}`,
    );
    expect((await host.order("describe")).text).toBe(`name:"node-peer" version:"2.0.1" ${points.join(" ")} `);
  });

  it("should read its log as hclog's, also what was printed", async () => {
    const { host } = await begin({ autoMtls });
    await answered(host, "veto", "log shell");
    const log = () => host.reports.filter(({ event }) => event === "log").map(({ text }) => JSON.parse(text ?? ""));
    await expect
      .poll(log)
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ "@level": "warn", "@message": "judged with doubts: shell" }),
          expect.objectContaining({ "@message": expect.stringContaining("printed: shell") }),
        ]),
      );
  });

  it("should end it with a word, and find no socket left", async () => {
    const { host, pid, socket } = await begin({ autoMtls });
    expect(existsSync(socket)).toBe(true);
    const stopped = await host.order("kill");
    expect(stopped.ms).toBeLessThan(1_000);
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(socket)).toBe(false);
    const exited = host.reports.find(({ text }) => text?.includes("plugin process exited"));
    expect(exited?.text).not.toContain("error");
  });

  it("should end it also while a call is stuck", async () => {
    const { host, pid, socket } = await begin({ autoMtls });
    const stuck = host.call("veto", "stuck");
    expect((await host.order("ping")).code).toBeUndefined();
    expect((await host.order("kill")).ms).toBeLessThan(2_500);
    expect((await stuck).code).toBeDefined();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(socket)).toBe(false);
  });

  it("should be told when it is gone", async () => {
    const { host } = await begin({ autoMtls });
    expect((await host.call("veto", "exit 4")).code).toBe("Unavailable");
  });

  it("should take it along when it is killed, also in the midst of a call", async () => {
    const marked = mark();
    const folder = temporaryFolder();
    const { host, pid } = await begin({ autoMtls, env: { TMPDIR: folder } }, marked);
    void host.call("veto", "stuck");
    await host.order("ping");
    host.kill();
    await expect.poll(() => isAlive(pid), { timeout: ORPHANED }).toBe(false);
    expect(running(marked)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("should take it along when it ends without a word", async () => {
    const { host, pid } = await begin({ autoMtls });
    void host.order("exit");
    await host.ended;
    await expect.poll(() => isAlive(pid), { timeout: ORPHANED }).toBe(false);
  });

  it("should have 64 calls at a time answered", async () => {
    const { host } = await begin({ autoMtls });
    const answers = await Promise.all(Array.from({ length: 64 }, (_, i) => answered(host, "transform", `say ${i}`)));
    expect(answers.map(textOf)).toEqual(Array.from({ length: 64 }, (_, i) => `${i}`));
  });

  it("should pass payloads of 20 MiB", async () => {
    const { host } = await begin({ autoMtls });
    const text = "x".repeat(20 * 1024 * 1024);
    expect(textOf(await answered(host, "transform", text))).toBe(text);
  });
});

describe("a genuine Go host of our example plugin", () => {
  it("should get its messages redacted", async () => {
    const env = { HOOKLEDGER_PROVIDER_CONFIG: '{"patterns":{"key":"sk-[a-z]+"}}' };
    const host = new GoHost([REDACTOR], { autoMtls: true, env });
    expect(await host.up).toMatchObject({ event: "started" });
    const text = textOf(await answered(host, "transform", "the key is sk-abcdef, keep it"));
    expect(text).toMatch(/^the key is .*, keep it$/);
    expect(text).not.toContain("abcdef");
  });
});

describe("a genuine Go host and reattaching", () => {
  it("should go on with a Node plugin that another client has started", async () => {
    const { host, pid } = await begin({});
    expect((await host.order("reattach")).error).toBeUndefined();
    expect(await answered(host, "veto", "deny it")).toEqual({ class: "deny" });
    await host.order("kill");
    expect(isAlive(pid)).toBe(false);
  });

  it("should reach a Node plugin under a debugger, host after host", async () => {
    const debugged = spawn(PLUGIN, ["--debug"], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => {
      debugged.kill("SIGKILL");
    });
    const [line] = await once(createInterface({ input: debugged.stdout }), "line");
    const variable = /^HOOKLEDGER_REATTACH_PROVIDERS='(.*)'$/.exec(line)?.[1] ?? "";
    const { "node-peer": reattach } = JSON.parse(variable);
    for (let i = 0; i < 2; i += 1) {
      const host = new GoHost([], { reattach });
      expect(await host.up).toMatchObject({ event: "started", pid: debugged.pid });
      expect(await answered(host, "veto", "deny it")).toEqual({ class: "deny" });
      expect((await host.order("ping")).code).toBeUndefined();
      void host.order("exit");
      await host.ended;
    }
    expect(isAlive(reattach.Pid)).toBe(true);
    debugged.kill("SIGTERM");
    await once(debugged, "exit");
    expect(existsSync(reattach.Addr.String)).toBe(false);
  });
});
