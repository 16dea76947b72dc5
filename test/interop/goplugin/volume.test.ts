import { describe, expect, it } from "vitest";
import { payloadFromView } from "#src/payload/payload.js";
import { buildGoPrograms } from "./build.js";
import { ask, carrying, startLife, textOf } from "./lives.js";

const { plugin } = buildGoPrograms();
const MEBIBYTE = 1024 * 1024;

describe("much to a Go plugin and from it", () => {
  it("should say both sizes when the plugin refuses more than its own 4 MiB, and go on", async () => {
    const { life } = await startLife(plugin);
    const large = payloadFromView({
      preToolCall: { call: { id: "c-1", toolName: "read_file", arguments: { text: "x".repeat(5 * MEBIBYTE) } } },
    });
    const answer = await ask(life, "veto", "", { payload: large });
    expect(answer).toMatchObject({ class: "failed", error: { category: "VETO_FAILED" } });
    if (answer.class !== "failed") return;
    expect(answer.error.message).toContain(`${large.bytes.length}`.slice(0, 4));
    expect(answer.error.message).toContain("4194304");
    expect(await ask(life, "veto", "read_file")).toEqual({ class: "allow" });
  });

  it("should pass what is just below", async () => {
    const { life } = await startLife(plugin, [], { autoMtls: "require" });
    const text = "x".repeat(3.9 * MEBIBYTE);
    expect(textOf(await ask(life, "transform", text))).toBe(text);
  });

  it("should refuse what is over our own bound", async () => {
    const { life } = await startLife(plugin, [], { maxMessageBytes: 1024 });
    const answer = await ask(life, "veto", "read_file", {
      payload: payloadFromView(carrying("veto", "x".repeat(2048))),
    });
    expect(answer).toMatchObject({ class: "failed", error: { message: expect.stringContaining("1024") } });
  });

  it.each(["stderr", "stdout"])("should keep up with 100 MB on %s, and keep little of it", async (stream) => {
    const { life, log } = await startLife(plugin);
    const before = process.memoryUsage().rss;
    const waiting = ask(life, "veto", `${stream} 100`, { timeoutMs: 30_000 });
    expect(await ask(life, "veto", "deny meanwhile")).toEqual({ class: "deny", reason: "meanwhile" });
    expect(await waiting).toEqual({ class: "allow" });
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * MEBIBYTE);
    for (const { message } of log) expect(message.length).toBeLessThanOrEqual(65_536);
    await life.close();
    expect(await life.ended).toBe("exited with code 0");
  });

  it("should bear what the plugin prints through its library", async () => {
    const { life } = await startLife(plugin);
    expect(await ask(life, "veto", "library 32")).toEqual({ class: "allow" });
  });

  it("should come up although 4 MB are on its stderr before the handshake", async () => {
    const { life } = await startLife(plugin, ["chatty"]);
    expect(await ask(life, "veto", "read_file")).toEqual({ class: "allow" });
  });
});
