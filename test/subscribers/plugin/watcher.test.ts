import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { WATCHER } from "#src/subscribers/plugin/watcher.js";
import { Ground, isAlive, until } from "../../support/plugin-lives.js";

/** The system's shell, and those that it is elsewhere, where there are any. */
const SHELLS = [["sh"], ["bash", "--posix"], ["busybox", "sh"]].filter(
  ([program = "", ...args]) => program === "sh" || spawnSync(program, [...args, "-c", ":"]).status === 0,
);

type Watched = {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly control: Socket;
  readonly folder: string;
  /** All that the script said, once it has ended. */
  readonly said: Promise<string>;
};

function watch(shell: readonly string[], ground: Ground, body: string, environment = {}): Watched {
  const [program = "sh", ...args] = shell;
  const folder = `${ground.folder}/hkl-private`;
  mkdirSync(folder);
  const plugin = ground.script(body);
  const child = spawn(program, [...args, "-c", WATCHER, "hookledger-plugin", folder, plugin, "one", "two words"], {
    detached: true,
    env: { PATH: process.env["PATH"], ...environment },
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const { pid } = child;
  const control = child.stdio[3];
  if (pid === undefined || !(control instanceof Socket)) throw new Error("the shell did not start");
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-pid, "SIGKILL");
  });
  let text = "";
  control.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  return { child, pid, control, folder, said: once(control, "close").then(() => text) };
}

describe.each(SHELLS.map((shell) => ({ shell, name: shell.join(" ") })))("the watcher in $name", ({ shell }) => {
  it.each([
    ["exit 0", "exit 0\n"],
    ["exit 42", "exit 42\n"],
    ["exit 127", "exit 127\n"],
    ["kill -KILL $$", "exit 137\n"],
    ["kill -SEGV $$", "exit 139\n"],
  ])("should tell how the plugin ended, and end with all that it leaves: %s", async (end, word) => {
    const ground = new Ground();
    const leave = `sh -c "trap '' TERM; while :; do sleep 1; done" ${ground.folder} &`;
    const watched = watch(shell, ground, `${leave} ${end}`);
    const exited = once(watched.child, "exit");
    expect(await watched.said).toBe(word);
    await exited;
    await until(() => ground.processes().length === 0);
    expect(ground.folders()).toEqual([]);
  });

  it("should hand on arguments, neither its socket nor its variables, and no input", async () => {
    const ground = new Ground();
    const probe = `printf '%s|' "$#" "$@" > ${ground.folder}/args; env > ${ground.folder}/env; read -r x; echo $? >> ${ground.folder}/args`;
    await watch(shell, ground, `${probe}; if (: <&3) 2>/dev/null; then exit 9; fi; exit 5`).said.then((word) => {
      expect(word).toBe("exit 5\n");
    });
    expect(readFileSync(`${ground.folder}/args`, "utf8")).toBe("2|one|two words|1\n");
    const names = readFileSync(`${ground.folder}/env`, "utf8").match(/^\w+(?==)/gm);
    // Of the plugin's own shell, and what every program that bash starts gets.
    expect(names?.filter((name) => !["PWD", "_"].includes(name))).toEqual(["PATH"]);
  });

  it("should leave variables alone that have the names of its own", async () => {
    const ground = new Ground();
    const own = Object.fromEntries(
      [...WATCHER.matchAll(/^ *([a-z]+)=/gm)].map(([, name = ""]) => [name, "the plugin's"]),
    );
    expect(Object.keys(own)).toContain("folder");
    const said = watch(shell, ground, `env > ${ground.folder}/env`, own).said;
    expect(await said).toBe("exit 0\n");
    const lines = readFileSync(`${ground.folder}/env`, "utf8").split("\n");
    for (const name of Object.keys(own)) expect(lines).toContain(`${name}=the plugin's`);
  });

  it("should pass on SIGTERM and wait for what the plugin makes of it", async () => {
    const ground = new Ground();
    const watched = watch(
      shell,
      ground,
      `trap 'touch ${ground.folder}/told; kill $!; exit 7' TERM; sleep 1000 & touch ${ground.folder}/up; while :; do wait; done`,
    );
    await until(() => ground.has("up"));
    process.kill(-watched.pid, "SIGTERM");
    expect(await watched.said).toBe("exit 7\n");
    expect(ground.has("told")).toBe(true);
    await until(() => ground.processes().length === 0);
  });

  it("should outlive every SIGTERM that the plugin ignores", async () => {
    const ground = new Ground();
    const watched = watch(shell, ground, `trap '' TERM; touch ${ground.folder}/up; exec sleep 1000`);
    await until(() => ground.has("up"));
    for (let round = 0; round < 3; round++) {
      process.kill(-watched.pid, "SIGTERM");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(isAlive(watched.pid)).toBe(true);
    watched.control.write("now\n");
    expect(await watched.said).toBe("exit 137\n");
    await until(() => ground.processes().length === 0);
    expect(ground.folders()).toEqual([]);
  });

  it("should end the plugin when the host is gone, and kill one that stays", async () => {
    const ground = new Ground();
    const stubborn = `sh -c "trap 'touch ${ground.folder}/child' TERM; while :; do sleep 1; done" ${ground.folder} &`;
    const watched = watch(
      shell,
      ground,
      `${stubborn} trap '' TERM; touch ${ground.folder}/up; while :; do sleep 1; done`,
    );
    await until(() => ground.has("up"));
    const since = performance.now();
    watched.control.destroy();
    await until(() => ground.processes().length === 0);
    expect(performance.now() - since).toBeLessThan(3_000);
    expect(existsSync(watched.folder)).toBe(false);
  });
});
