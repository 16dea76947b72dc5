import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { KERNEL_COOKIE } from "#src/goplugin/protocol.js";
import { buildGoPrograms } from "./build.js";
import { kernelOn, projectWith } from "./kernels.js";
import { carrying, isAlive, temporaryFolder } from "./lives.js";

/** Runs the plugin by hand: go-plugin 1.0.1 has no mode for that, but with the cookie anybody is its host. */
async function byHand(...args: readonly string[]) {
  const child = spawn(buildGoPrograms().plugin, args, {
    env: { PATH: process.env["PATH"], TMPDIR: temporaryFolder(), [KERNEL_COOKIE.key]: KERNEL_COOKIE.value },
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const [, version, network, address] = String(line).split("|");
  const { pid = 0 } = child;
  const plugin = {
    Protocol: "grpc",
    ProtocolVersion: Number(version),
    Pid: pid,
    Test: true,
    Addr: { Network: network, String: address },
  };
  return {
    pid,
    variable: JSON.stringify({ peer: plugin }),
    end: () => child.kill("SIGKILL"),
    ended: once(child, "exit"),
  };
}

describe("reattaching to a Go plugin that runs already", () => {
  it.each([
    ["unix", []],
    ["tcp", ["tcp"]],
  ] as const)("should reach it on %s, and never end it", async (_, args) => {
    const { pid, variable } = await byHand(...args);
    const env = { PATH: process.env["PATH"], HOOKLEDGER_REATTACH_PROVIDERS: variable };
    // The one in the configuration could not even start.
    const config = projectWith({ args: ["stray"] });
    for (let i = 0; i < 2; i += 1) {
      const { kernel } = await kernelOn(config, { env });
      await kernel.start();
      expect(await kernel.dispatch(carrying("veto", "read_file"))).toMatchObject({ allowed: true });
      expect(await kernel.dispatch(carrying("veto", "deny it"))).toMatchObject({ allowed: false, reason: "it" });
      await kernel.close();
      expect(isAlive(pid)).toBe(true);
    }
  });

  it("should deny once it is gone", async () => {
    const { variable, end, ended } = await byHand();
    const env = { PATH: process.env["PATH"], HOOKLEDGER_REATTACH_PROVIDERS: variable };
    const { kernel } = await kernelOn(projectWith(), { env });
    expect(await kernel.dispatch(carrying("veto", "read_file"))).toMatchObject({ allowed: true });
    end();
    await ended;
    expect(await kernel.dispatch(carrying("veto", "read_file"))).toMatchObject({
      allowed: false,
      hookErrors: [{ category: "PROCESS_CRASHED" }],
    });
  });
});
