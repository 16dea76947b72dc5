import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { status as Status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { EMPTY } from "#src/goplugin/messages.js";
import { KERNEL_COOKIE, METHODS } from "#src/goplugin/protocol.js";
import { act, ask, FIXTURES, HOST_ENV, PluginProcess, type StartOptions } from "./plugin-process.js";

const started: PluginProcess[] = [];

function start(options?: StartOptions): PluginProcess {
  const plugin = new PluginProcess(options);
  started.push(plugin);
  return plugin;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((plugin) => plugin.stop()));
});

describe("the start of a plugin", () => {
  it("should explain itself on stderr and exit with 1 when it is run by hand", async () => {
    const plugin = start({ env: {} });
    await expect(plugin.exited).resolves.toEqual([1, null]);
    expect(plugin.stderr.join("\n")).toMatch(/^acting 1\.2\.3 is a plugin: a host starts it.*--debug/s);
    expect(readdirSync(plugin.folder)).toEqual([]);
  });

  it("should print one line, and listen where only its user can reach it", async () => {
    const plugin = start();
    const [core, app, network, address = "", protocol, certificate] = await plugin.handshake();
    expect([core, app, network, protocol, certificate]).toEqual(["1", "1", "unix", "grpc", ""]);
    expect(address.startsWith(plugin.folder)).toBe(true);
    expect(statSync(address).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(address)).mode & 0o777).toBe(0o700);
  });

  it("should put its socket where the host says", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sdk-sockets-"));
    const plugin = start({ env: { ...HOST_ENV, PLUGIN_UNIX_SOCKET_DIR: folder } });
    expect(dirname(dirname(await plugin.address()))).toBe(folder);
    await plugin.stop();
    rmSync(folder, { recursive: true });
  });

  it.each([
    ["no common version", { PLUGIN_PROTOCOL_VERSIONS: "2,3" }, 'version 1 of the plugin protocol, and the host "2,3"'],
    ["a certificate that is none", { PLUGIN_CLIENT_CERT: "pem" }, "PLUGIN_CLIENT_CERT is not one certificate"],
    [
      "a configuration that is none",
      { HOOKLEDGER_PROVIDER_CONFIG: "[" },
      "HOOKLEDGER_PROVIDER_CONFIG is no JSON object",
    ],
    ["a folder that is not there", { PLUGIN_UNIX_SOCKET_DIR: "/nowhere/at/all" }, "no socket in /nowhere/at/all"],
    ["a folder too deep for a socket", { PLUGIN_UNIX_SOCKET_DIR: `/${"d".repeat(99)}` }, "is too long for a socket"],
  ])("should say why it does not start: %s", async (_name, env, text) => {
    const plugin = start({ env: { ...HOST_ENV, ...env } });
    await expect(plugin.exited).resolves.toEqual([1, null]);
    expect(plugin.stderr.join("\n")).toContain(text);
    expect(plugin.stdout).toEqual([]);
  });
});

describe("the end of a plugin", () => {
  it("should come after Shutdown is answered, and leave nothing behind", async () => {
    const plugin = start();
    const client = await plugin.client();
    const stdio = client.makeServerStreamRequest(METHODS.stdio, Buffer.from, Buffer.from, Buffer.from(EMPTY));
    const streamed = once(stdio.resume(), "end");
    await once(stdio, "metadata");
    await expect(ask(client, METHODS.shutdown, EMPTY)).resolves.toMatchObject({ bytes: Buffer.alloc(0) });
    await expect(plugin.exited).resolves.toEqual([0, null]);
    await streamed;
    expect(readdirSync(plugin.folder)).toEqual([]);
  });

  it("should let running calls finish on SIGTERM, and take no other", async () => {
    const plugin = start();
    const client = await plugin.client();
    const running = act(client, "slow");
    await plugin.line("stderr", "is slow");
    plugin.child.kill("SIGTERM");
    await expect.poll(() => readdirSync(plugin.folder)).toEqual([]);
    await expect(act(client, "allow")).rejects.toMatchObject({ code: Status.UNAVAILABLE });
    await expect(running).resolves.toMatchObject({ bytes: Buffer.from([0x1a, 2, 0x08, 1]) });
    await expect(plugin.exited).resolves.toEqual([0, null]);
  });

  it("should come by itself once the author closes it, served once", async () => {
    const plugin = start({ file: "closing.mjs" });
    await expect(plugin.exited).resolves.toEqual([0, null]);
    expect(plugin.stderr).toEqual(["HL_USAGE servePlugin: one process serves one plugin, once"]);
    expect(readdirSync(plugin.folder)).toEqual([]);
  });

  it("should not come by Ctrl-C, which belongs to the host", async () => {
    const plugin = start();
    const client = await plugin.client();
    plugin.child.kill("SIGINT");
    await expect(act(client, "slow")).resolves.toBeDefined();
  });

  it.each([
    ["stray", 2, "an exception was not caught: Error: strayed"],
    ["reject", 2, "a rejection was not handled: Error: rejected by nobody"],
    ["exit", 7, undefined],
  ])("should be a crash where a hook's code goes astray: %s", async (name, code, text) => {
    const plugin = start();
    const client = await plugin.client();
    await expect(act(client, name)).rejects.toMatchObject({ code: Status.UNAVAILABLE });
    await expect(plugin.exited).resolves.toEqual([code, null]);
    if (text !== undefined) expect(plugin.logged().join("\n")).toContain(text);
    expect(readdirSync(plugin.folder)).toEqual([]);
  });

  it.each(["hang", "block"])("should follow the end of the process that started it, while a hook %ss", async (name) => {
    const plugin = start({ under: [process.execPath, join(FIXTURES, "parent.mjs")] });
    const client = await plugin.client();
    act(client, name).catch(() => {});
    await plugin.line("stderr", `${name}s`);
    const killed = performance.now();
    plugin.child.kill("SIGKILL");
    // The plugin has inherited the streams: they end with it.
    await plugin.exited;
    expect(performance.now() - killed).toBeLessThan(3_000);
    expect(readdirSync(plugin.folder)).toEqual([]);
  });

  it("should follow the end of a host that is not its parent", async () => {
    const shell = ["/bin/sh", "-c", '"$@" <&- & wait', "sh"];
    const plugin = start({ under: shell });
    const client = await plugin.client();
    await act(client, "allow");
    client.close();
    plugin.child.stderr.destroy();
    await plugin.exited;
    expect(readdirSync(plugin.folder)).toEqual([]);
  });
});

describe("a plugin started with --debug", () => {
  it("should print the variable for the host, and serve one host after the other until Ctrl-C", async () => {
    const plugin = start({ env: {}, args: ["--debug"] });
    const line = await plugin.line("stdout", "HOOKLEDGER_REATTACH_PROVIDERS=");
    const json = /^HOOKLEDGER_REATTACH_PROVIDERS='(.+)'$/.exec(line)?.[1] ?? "";
    const address = JSON.parse(json).acting.Addr.String;
    expect(JSON.parse(json)).toEqual({
      acting: {
        Protocol: "grpc",
        ProtocolVersion: 1,
        Pid: plugin.child.pid,
        Test: true,
        Addr: { Network: "unix", String: expect.stringMatching(/^\//) },
      },
    });
    expect(existsSync(address)).toBe(true);
    for (let host = 0; host < 2; host++) {
      const client = await plugin.client(undefined, address);
      await ask(client, METHODS.shutdown, EMPTY);
      await act(client, "print");
      client.close();
    }
    await plugin.line("stdout", "printed by a hook");
    expect(plugin.stderr).toEqual([]);
    plugin.child.kill("SIGINT");
    await expect(plugin.exited).resolves.toEqual([0, null]);
    expect(existsSync(address)).toBe(false);
  });

  it("should serve its host all the same where a host starts it so", async () => {
    const plugin = start({ args: ["--debug"], env: { [KERNEL_COOKIE.key]: KERNEL_COOKIE.value } });
    await expect(plugin.handshake()).resolves.toHaveLength(6);
  });
});
