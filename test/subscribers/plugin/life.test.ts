import { readdirSync, readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startPlugin } from "#src/subscribers/plugin/start.js";
import { Ground, isAlive, PEER, specOf, startPeer, told, until } from "../../support/plugin-lives.js";
import { call } from "../../support/subscriber-calls.js";

const CRASHED = (how: string) => ({
  class: "failed",
  error: { category: "PROCESS_CRASHED", message: `the plugin ${how}` },
});

describe("a plugin that runs", () => {
  it("should answer, and leave nothing when it is closed", async () => {
    const ground = new Ground();
    const { life, log } = await startPeer({ folder: ground.folder });
    expect(await life.invoke(call("veto"))).toMatchObject({ class: "allow" });
    expect(await life.invoke(call("veto", { session: "deny" }))).toMatchObject({ class: "deny" });
    expect(await life.invoke(call("veto", { session: "fail:my reasons" }))).toMatchObject({
      class: "failed",
      error: { category: "VETO_FAILED", message: "INTERNAL: my reasons" },
    });
    const [folder = ""] = ground.folders();
    expect(statSync(`${ground.folder}/${folder}`).mode & 0o777).toBe(0o700);
    expect(told(log, "started", "folderMode")).toBe("448");
    const pid = Number(told(log, "started", "pid"));
    expect(isAlive(pid)).toBe(true);

    await Promise.all([life.close(), life.close()]);
    expect(life.end).toBe("exited with code 0");
    expect(await life.ended).toBe(life.end);
    expect(isAlive(pid)).toBe(false);
    expect(ground.folders()).toEqual([]);
    expect(ground.processes()).toEqual([]);
    expect(await life.invoke(call("veto"))).toEqual(CRASHED("exited with code 0"));
  });

  it("should have its handshake line read in pieces, and what it prints logged", async () => {
    new Ground();
    const prints = [
      ["stdout", "half a "],
      ["stderr", "[WARN] careful\n"],
      ["stdout", "line\n"],
    ];
    const { log } = await startPeer({ split: true, prints });
    await until(() => log.length >= 4);
    const lines = log.filter(({ message }) => !message.startsWith("started"));
    expect(lines).toContainEqual({ level: "debug", provider: "peer", message: "after the handshake" });
    expect(lines).toContainEqual({ level: "debug", provider: "peer", message: "half a line" });
    expect(lines).toContainEqual({ level: "warn", provider: "peer", message: "careful" });
  });

  it("should be named with both sizes where a request is too large for it", async () => {
    new Ground();
    const { life } = await startPeer({ maxMessageBytes: 16 });
    const answer = await life.invoke(call("transform"));
    expect(answer).toMatchObject({ class: "failed", error: { category: "TRANSFORM_FAILED" } });
    expect(JSON.stringify(answer)).toMatch(
      /ran out of a resource on a request of \d+ bytes \(bound here: 1048576 bytes\): RESOURCE_EXHAUSTED: .*\(\d+ vs\.? 16\)/,
    );
  });

  it("should let its host end without having been closed", async () => {
    const ground = new Ground();
    const { said, code } = await ground.host({ grandchild: true }, { stay: false });
    expect(code).toBe(0);
    const pids = [told(said, "started", "pid"), told(said, "grandchild", "pid")].map(Number);
    await until(() => !pids.some(isAlive) && ground.folders().length === 0);
  });
});

describe("a plugin that ends by itself", () => {
  it.each([
    ["exit:2", "exited with code 2"],
    ["exit:0", "exited with code 0"],
    ["exit:200", "exited with code 200"],
    ["kill", "was killed by SIGKILL"],
  ])("should fail the calls that it leaves, at once and with the reason: %s", async (order, how) => {
    const ground = new Ground();
    const { life, log } = await startPeer({ folder: ground.folder, grandchild: order === "exit:2" });
    const hanging = [life.invoke(call("veto", { session: "hang" })), life.invoke(call("observe", { session: "hang" }))];
    await until(() => log.filter(({ message }) => message === "called").length === 2);
    const since = performance.now();
    expect(await life.invoke(call("veto", { session: order }))).toEqual(CRASHED(how));
    expect(await Promise.all(hanging)).toEqual([CRASHED(how), CRASHED(how)]);
    expect(performance.now() - since).toBeLessThan(1_000);
    expect(life.end).toBe(how);
    await life.close();
    expect(ground.folders()).toEqual([]);
    expect(ground.processes()).toEqual([]);
  });

  it("should not outlive the part of its watcher that would notice the end of the host", async () => {
    const ground = new Ground();
    const { life } = await startPeer({ folder: ground.folder });
    // Of the watcher's two children one is the plugin, and one listens to the host.
    const listener = readdirSync("/proc").find((name) => {
      if (!/^\d+$/.test(name)) return false;
      try {
        const [, , parent] = readFileSync(`/proc/${name}/stat`, "utf8")
          .replace(/\(.*\)/s, "_")
          .split(" ")
          .slice(1);
        const program = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0")[0] ?? "";
        return Number(parent) === life.pid && /(?:^|\/)sh$/.test(program);
      } catch {
        return false;
      }
    });
    expect(listener).toBeDefined();
    process.kill(Number(listener), "SIGKILL");
    expect(await life.ended).toBe("was killed by SIGKILL");
    await life.close();
    expect(ground.processes()).toEqual([]);
  });

  it("should be given less time to end when it left its last call unanswered", async () => {
    new Ground();
    const { life } = await startPeer({ ignoreTerm: true, shutdown: "hang" });
    const silent = call("veto", { session: "hang", timeoutMs: 20 });
    silent.clock.advance(20);
    const called = life.invoke(silent);
    silent.abort();
    await called;
    const begun = performance.now();
    await life.close();
    expect(performance.now() - begun).toBeLessThan(1_900);
  });

  it("should not outlive its watcher", async () => {
    const ground = new Ground();
    const { life, log } = await startPeer({ folder: ground.folder, ignoreTerm: true });
    process.kill(life.pid, "SIGKILL");
    expect(await life.ended).toBe("was killed by SIGKILL");
    await life.close();
    expect(isAlive(Number(told(log, "started", "pid")))).toBe(false);
    expect(ground.folders()).toEqual([]);
  });

  it("should still be heard with the answer that it sent before", async () => {
    new Ground();
    const { life } = await startPeer();
    expect(await life.invoke(call("veto", { session: "answer-and-exit" }))).toMatchObject({ class: "allow" });
    expect(await life.ended).toBe("exited with code 9");
  });

  it("should leave what it said last in the log, and in no answer", async () => {
    const ground = new Ground();
    const trace = "thread 'main' panicked\\n  at src/main.rs:4\\n";
    const peer = ground.script(`printf "${trace}" >&2; exec "${process.execPath}" "${PEER}"`);
    const log: { level: string; message: string }[] = [];
    const started = await startPlugin(specOf(peer, { log: (line) => log.push(line) }));
    if (!started.ok) throw new Error(started.message);
    const answer = await started.life.invoke(call("veto", { session: "exit:101" }));
    expect(answer).toEqual(CRASHED("exited with code 101"));
    await started.life.close();
    expect(log.filter(({ level }) => level === "error").map(({ message }) => message)).toEqual([
      "before it exited with code 101: thread 'main' panicked",
      "before it exited with code 101:   at src/main.rs:4",
    ]);
  });
});

describe("closing a plugin", () => {
  const graceMs = 150;

  it.each([
    ["knows no Shutdown", { shutdown: "none" }, "was killed by SIGTERM"],
    ["does not answer to Shutdown", { shutdown: "hang" }, "was killed by SIGTERM"],
    ["promises to end and does not", { shutdown: "ignore" }, "was killed by SIGTERM"],
    ["ignores everything", { shutdown: "ignore", ignoreTerm: true, grandchild: true }, "was killed by SIGKILL"],
    ["ends with a code", { exitCode: 3 }, "exited with code 3"],
  ])("should end one that %s", async (_, orders, how) => {
    const ground = new Ground();
    const { life, log } = await startPeer({ ...orders, folder: ground.folder }, {}, { graceMs });
    const pid = Number(told(log, "started", "pid"));
    await life.close();
    expect(life.end).toBe(how);
    expect(isAlive(pid)).toBe(false);
    expect(ground.processes()).toEqual([]);
    expect(ground.folders()).toEqual([]);
  });

  it("should answer the calls that are in flight", async () => {
    new Ground();
    const { life, log } = await startPeer();
    const hanging = life.invoke(call("veto", { session: "hang" }));
    await until(() => log.some(({ message }) => message === "called"));
    await life.close();
    expect(await hanging).toEqual(CRASHED("exited with code 0"));
  });

  it("should leave nothing after many rounds", async () => {
    const ground = new Ground();
    const before = process.getActiveResourcesInfo().length;
    for (let round = 0; round < 8; round++) {
      const { life } = await startPeer({ folder: ground.folder });
      await life.invoke(call("veto"));
      await life.close();
    }
    expect(ground.processes()).toEqual([]);
    expect(ground.folders()).toEqual([]);
    await until(() => process.getActiveResourcesInfo().length <= before);
  });
});

describe("a host that is killed", () => {
  it.each([
    ["a plugin that obeys", {}],
    ["a plugin that ignores SIGTERM", { ignoreTerm: true, grandchild: true }],
  ])("should take %s with it, within 3 s", async (_, orders) => {
    const ground = new Ground();
    const { said, kill } = await ground.host(orders, { stay: true });
    const pids = [told(said, "started", "pid"), told(said, "grandchild", "pid")]
      .filter((pid) => pid !== "")
      .map(Number);
    expect(pids.every(isAlive)).toBe(true);
    expect(ground.folders()).toHaveLength(1);
    const since = performance.now();
    kill();
    await until(() => !pids.some(isAlive) && ground.folders().length === 0);
    expect(performance.now() - since).toBeLessThan(3_000);
  });
});
