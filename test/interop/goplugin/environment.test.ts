import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildGoPrograms } from "./build.js";
import { ask, isAlive, startLife, textOf } from "./lives.js";

const { plugin } = buildGoPrograms();

type Surroundings = {
  readonly pid: number;
  readonly arguments: readonly string[];
  readonly environment: readonly string[];
  readonly folder: string;
  readonly temporary: string;
  readonly temporaryMode: string;
};

async function surroundings(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  autoMtls: "off" | "require",
) {
  const { life } = await startLife(plugin, args, { environment, autoMtls });
  const found: Surroundings = JSON.parse(textOf(await ask(life, "transform", "environment")));
  return { found, life };
}

describe("the environment of a plugin", () => {
  it("should be what is let through, and nothing of the host's own", async () => {
    process.env["HOOKLEDGER_INTEROP_SECRET"] = "of the host";
    const environment = { PATH: "/usr/bin:/bin", HOME: "/nowhere", SUBTLE: "$(id) `id` 'x' \"y\"\n*" };
    const args = ["--flag", "a b", "$(touch /tmp/never)", "*", "", "'", "-e", "\n"];
    const { found } = await surroundings(args, environment, "off");
    delete process.env["HOOKLEDGER_INTEROP_SECRET"];
    const named = new Map(found.environment.map((entry) => [entry.slice(0, entry.indexOf("=")), entry]));
    for (const [name, value] of Object.entries(environment)) expect(named.get(name)).toBe(`${name}=${value}`);
    // PWD and the like are made by the shell that watches over the plugin.
    const allowed = [
      ...Object.keys(environment),
      "PLUGGABLEHARNESS_AGENT_PLUGIN",
      "PLUGIN_PROTOCOL_VERSIONS",
      "PLUGIN_UNIX_SOCKET_DIR",
      "TMPDIR",
      "PWD",
      "OLDPWD",
      "SHLVL",
      "_",
    ];
    expect([...named.keys()].filter((name) => !allowed.includes(name))).toEqual([]);
    expect(found.arguments).toEqual(args);
  });

  it("should have a temporary folder of its own that nobody else may enter", async () => {
    const { found, life } = await surroundings([], { PATH: "/bin" }, "require");
    expect(found.temporaryMode).toBe("700");
    expect(found.environment).toContain(`TMPDIR=${found.temporary}`);
    expect(found.environment.some((entry) => entry.startsWith("PLUGIN_CLIENT_CERT=-----BEGIN CERTIFICATE-----"))).toBe(
      true,
    );
    await life.close();
    expect(isAlive(found.pid)).toBe(false);
    expect(existsSync(found.temporary)).toBe(false);
  });
});
