import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { buildGoPrograms } from "./build.js";
import { HostProcess } from "./host-process.js";
import { projectWith } from "./kernels.js";
import { AUTO_MTLS, ask, isAlive, mark, running, startLife, temporaryFolder, textOf } from "./lives.js";

const { plugin } = buildGoPrograms();
const NODE_PLUGIN = fileURLToPath(new URL("node-plugin.mjs", import.meta.url));

/** ms that an orderly end may take */
const PROMPT = 1_500;
/** ms that a plugin may live on without its host */
const ORPHANED = 3_000;

describe.each(AUTO_MTLS)("the end of a Go plugin, AutoMTLS %s", (autoMtls) => {
  it("should be prompt", async () => {
    const { life } = await startLife(plugin, [], { autoMtls });
    const began = performance.now();
    await life.close();
    expect(performance.now() - began).toBeLessThan(PROMPT);
    expect(await life.ended).toBe("exited with code 0");
  });

  it("should leave no file and no process, not even a grandchild", async () => {
    const marked = mark();
    const { life } = await startLife(plugin, ["grandchild", marked], { autoMtls });
    const { temporary } = JSON.parse(textOf(await ask(life, "transform", "environment")));
    expect(readdirSync(temporary)).not.toEqual([]);
    expect(running(marked).length).toBeGreaterThanOrEqual(2);
    await life.close();
    expect(running(marked)).toEqual([]);
    expect(existsSync(temporary)).toBe(false);
  });

  it.each([
    ["does not answer Shutdown", ["ignore-shutdown"]],
    ["ignores SIGTERM", ["ignore-term"]],
    ["stays after Shutdown", ["linger"]],
    ["ignores both", ["ignore-shutdown", "ignore-term"]],
    ["stays and ignores SIGTERM", ["linger", "ignore-term"]],
  ])("should come in the end, also of one that %s", async (_, args) => {
    const marked = mark();
    const { life } = await startLife(plugin, [...args, marked], { autoMtls, graceMs: 300 });
    const { pid, temporary } = JSON.parse(textOf(await ask(life, "transform", "environment")));
    const call = ask(life, "veto", "stuck", { timeoutMs: 60_000 });
    await life.close();
    expect(await call).toMatchObject({ class: "failed" });
    expect(isAlive(pid)).toBe(false);
    expect(running(marked)).toEqual([]);
    expect(existsSync(temporary)).toBe(false);
    expect(await life.ended).toBe(
      args.includes("ignore-term") && args.length > 1
        ? "was killed by SIGKILL"
        : args.includes("ignore-term")
          ? "exited with code 0"
          : "was killed by SIGTERM",
    );
  });

  it("should come, also of one that is stopped", async () => {
    const { life } = await startLife(plugin, [], { autoMtls, graceMs: 100 });
    expect(await ask(life, "veto", "freeze", { timeoutMs: 100 })).toMatchObject({ class: "failed" });
    await life.close();
    expect(await life.ended).toBe("was killed by SIGKILL");
  });

  it("should take its grandchildren along when it crashes", async () => {
    const marked = mark();
    const { life } = await startLife(plugin, [marked], { autoMtls });
    expect(await ask(life, "veto", "grandchild")).toMatchObject({ class: "deny" });
    expect(running(marked).length).toBeGreaterThanOrEqual(2);
    await ask(life, "veto", "exit 2");
    await life.ended;
    await expect.poll(() => running(marked)).toEqual([]);
    await life.close();
  });
});

describe("a host that is killed", () => {
  it("should take every plugin along, whatever they ignore, and their grandchildren", async () => {
    const folder = temporaryFolder();
    const marked = mark();
    const manners = [
      ["grandchild"],
      ["grandchild", "ignore-term"],
      ["grandchild", "ignore-shutdown", "linger", "ignore-term"],
    ];
    const host = await HostProcess.start(
      AUTO_MTLS.flatMap((autoMtls) => [
        ...manners.map((args) => ({ path: plugin, args: [...args, marked], autoMtls })),
        { path: NODE_PLUGIN, args: [marked], autoMtls },
      ]),
      { TMPDIR: folder },
    );
    expect(host.pids.every(isAlive)).toBe(true);
    expect(running(marked).length).toBeGreaterThanOrEqual(2 * host.pids.length);
    expect(readdirSync(folder)).not.toEqual([]);
    host.kill();
    await expect.poll(() => running(marked), { timeout: ORPHANED }).toEqual([]);
    await expect.poll(() => readdirSync(folder), { timeout: ORPHANED }).toEqual([]);
  });
});

describe("a kernel whose process is killed", () => {
  it("should take its plugins along", async () => {
    const folder = temporaryFolder();
    const marked = mark();
    const host = await HostProcess.start([], { TMPDIR: folder });
    expect(await host.kernel(projectWith({ args: ["grandchild", "ignore-term", marked] }))).toEqual([]);
    expect(running(marked).length).toBeGreaterThanOrEqual(2);
    host.kill();
    await expect.poll(() => running(marked), { timeout: ORPHANED }).toEqual([]);
    await expect.poll(() => readdirSync(folder), { timeout: ORPHANED }).toEqual([]);
  });
});

describe("a hundred starts and stops", () => {
  it("should leave no process, no socket and no temporary folder", async () => {
    const folder = temporaryFolder();
    const marked = mark();
    const host = await HostProcess.start([], { TMPDIR: folder });
    const rounds = Array.from({ length: 100 }, (_, i) => ({
      path: i % 4 === 1 ? NODE_PLUGIN : plugin,
      args: i % 20 === 0 ? ["grandchild", marked] : [marked],
      autoMtls: AUTO_MTLS[i % AUTO_MTLS.length] ?? "auto",
    }));
    const { descriptors } = await host.rounds(rounds);
    expect(running(marked)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
    expect(descriptors.after).toBeLessThan(descriptors.before + 5);
    host.kill();
  });
});
