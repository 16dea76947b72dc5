import { describe, expect, it } from "vitest";
import { payloadFromView } from "#src/payload/payload.js";
import { UNKNOWN_FIELDS } from "#src/payload/view.js";
import { buildGoPrograms } from "./build.js";
import { AUTO_MTLS, ask, isAlive, messagesOf, startLife, textOf } from "./lives.js";

const { plugin } = buildGoPrograms();
const TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OLD_AGE = { timeoutMs: 60_000 };

describe.each(AUTO_MTLS)("our host of a genuine Go plugin, AutoMTLS %s", (autoMtls) => {
  const begin = () => startLife(plugin, [], { autoMtls });

  it("should get a veto: allow, and deny with its reason", async () => {
    const { life } = await begin();
    expect(await ask(life, "veto", "read_file")).toEqual({ class: "allow" });
    expect(await ask(life, "veto", "deny 100 % – nicht heute\n")).toEqual({
      class: "deny",
      reason: "100 % – nicht heute\n",
    });
  });

  it("should get a transform, with everything kept that the plugin does not know", async () => {
    const { life } = await begin();
    const unknown = Uint8Array.of(0xa0, 0x38, 7);
    const payload = payloadFromView({
      preModelCall: {
        messages: [
          { role: "ROLE_USER", content: [{ text: { text: "upper" } }], id: "m-1", [UNKNOWN_FIELDS]: unknown },
          {
            role: "ROLE_ASSISTANT",
            content: [{ toolUse: { id: "u-1", name: "read", arguments: { z: 0, a: [null, { b: "" }], m: false } } }],
            id: "m-2",
            producedByModelId: "",
          },
        ],
        model: { provider: "acme", id: "large" },
      },
    });
    const answer = await ask(life, "transform", "", { payload });
    const [first, second] = messagesOf(answer);
    expect(first).toMatchObject({ content: [{ text: { text: "UPPER" } }], [UNKNOWN_FIELDS]: unknown });
    expect(second).toEqual((payload.view as { messages: readonly unknown[] }).messages[1]);
  });

  it("should take an answer that changes nothing for the very same bytes", async () => {
    const { life } = await begin();
    const answer = await ask(life, "transform", "as it is");
    expect(answer).toMatchObject({ class: "transformed" });
    expect(textOf(answer)).toBe("as it is");
  });

  it("should get an observer's acknowledgement", async () => {
    const { life } = await begin();
    expect(await ask(life, "observe", "default")).toEqual({ class: "ack" });
  });

  it.each(["observe", "transform", "veto"] as const)("should tell a failure from nonsense: %s", async (mode) => {
    const { life } = await begin();
    const category = { observe: "UNKNOWN", transform: "TRANSFORM_FAILED", veto: "VETO_FAILED" }[mode];
    expect(await ask(life, mode, "fail for 100 % want of a näil, 50%")).toEqual({
      class: "failed",
      error: { category, message: "UNKNOWN: for 100 % want of a näil, 50%" },
    });
    expect(await ask(life, mode, "unset")).toEqual({
      class: "invalid",
      error: { category: "INVALID_RESPONSE", message: "empty answer: no outcome is set" },
    });
    expect(await ask(life, mode, "other")).toEqual({
      class: "invalid",
      error: {
        category: "INVALID_RESPONSE",
        message: mode === "observe" ? "VetoResult in answer to observe" : `ObserveAck in answer to ${mode}`,
      },
    });
  });

  it.each([
    ["panic", "exited with code 2"],
    ["exit 2", "exited with code 2"],
    ["exit 0", "exited with code 0"],
    ["kill", "was killed by SIGKILL"],
  ])("should say at once how the process ended: %s", async (order, end) => {
    const { life, log } = await begin();
    const began = performance.now();
    const others = [ask(life, "observe", "hang", OLD_AGE), ask(life, "transform", "hang", OLD_AGE)];
    const answers = [await ask(life, "veto", order, OLD_AGE), ...(await Promise.all(others))];
    expect(performance.now() - began).toBeLessThan(2_000);
    for (const answer of answers) {
      expect(answer).toEqual({
        class: "failed",
        error: { category: "PROCESS_CRASHED", message: expect.stringContaining(end) },
      });
      expect(JSON.stringify(answer)).not.toContain("goroutine");
    }
    expect(await life.ended).toBe(end);
    expect(life.end).toBe(end);
    expect(await ask(life, "veto", "read_file")).toMatchObject({ error: { category: "PROCESS_CRASHED" } });
    // The stack is for whoever reads the log.
    if (order === "panic") {
      const text = log.map(({ message }) => message).join("\n");
      expect(text).toContain("a bug of the plugin's own");
      expect(text).toContain("goroutine");
    }
  });

  it("should end a call at its deadline or when it is cancelled, and go on with the next", async () => {
    const { life } = await begin();
    const began = performance.now();
    expect(await ask(life, "veto", "hang", { timeoutMs: 200 })).toMatchObject({ class: "failed" });
    expect(await ask(life, "veto", "stuck", { timeoutMs: 200 })).toMatchObject({ class: "failed" });
    const cancelled = new AbortController();
    const call = ask(life, "veto", "stuck", { cancel: cancelled.signal });
    cancelled.abort();
    await call;
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(await ask(life, "veto", "read_file")).toEqual({ class: "allow" });
    await life.close();
    expect(isAlive(life.pid)).toBe(false);
  });

  it("should not take a plugin that has nothing more to say for one that has ended", async () => {
    const { life } = await begin();
    expect(await ask(life, "veto", "mute")).toEqual({ class: "allow" });
    expect(await ask(life, "veto", "deny it")).toEqual({ class: "deny", reason: "it" });
    expect(life.end).toBe(null);
  });

  it("should hand on what belongs to the call", async () => {
    const { life } = await begin();
    const answer = await ask(life, "transform", "metadata", { session: "s ä", turn: "t-1", traceparent: TRACEPARENT });
    expect(JSON.parse(textOf(answer))).toMatchObject({
      "hookledger-dispatch": ["01ARZ3NDEKTSV4RRFFQ69G5FAV"],
      "hookledger-session": ["s%20%C3%A4"],
      "hookledger-turn": ["t-1"],
      traceparent: [TRACEPARENT],
    });
  });

  it("should read what the plugin says of itself", async () => {
    const { life } = await begin();
    expect(await life.describe(5_000)).toEqual({
      name: "peer",
      version: "1.4.2",
      category: "tool",
      supportedHookPoints: ["session-start", "pre-model-call", "pre-tool-call", "plan-ready", "post-tool-call"],
    });
    const { life: silent } = await startLife(plugin, ["no-info"], { autoMtls });
    expect(await silent.describe(5_000)).toBe(null);
  });

  it("should log what it writes, at its level", async () => {
    const { life, log } = await begin();
    await ask(life, "veto", "log shell");
    await expect
      .poll(() => log)
      .toEqual(
        expect.arrayContaining([
          { level: "warn", provider: "peer", message: expect.stringMatching(/judged with doubts.*tool.*shell/) },
          { level: "error", provider: "peer", message: expect.stringContaining("not JSON: shell") },
        ]),
      );
  });

  it("should answer 64 calls at a time", async () => {
    const { life } = await begin();
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, i) => ask(life, "transform", i % 2 === 0 ? `say ${i}` : "upper")),
    );
    expect(answers.map(textOf)).toEqual(Array.from({ length: 64 }, (_, i) => (i % 2 === 0 ? `${i}` : "UPPER")));
  });
});

describe("a plugin that listens on TCP", () => {
  it.each(["auto", "require"] as const)("should be reached with AutoMTLS %s", async (autoMtls) => {
    const { life } = await startLife(plugin, ["tcp"], { autoMtls });
    expect(await ask(life, "veto", "deny over TCP")).toEqual({ class: "deny", reason: "over TCP" });
  });
});
