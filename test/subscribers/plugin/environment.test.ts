import { describe, expect, it } from "vitest";
import type { Provider } from "#src/config/types.js";
import { pluginEnvironment, startEnvironment } from "#src/subscribers/plugin/environment.js";

function provider(env: readonly string[], body?: Provider["body"]): Provider {
  const launch = { args: [], env, startTimeoutMs: 1, autoMtls: "auto" } as const;
  return {
    name: "gate",
    sourceText: "./gate",
    source: { kind: "plugin", path: "/gate", launch },
    sensitive: [],
    place: { file: "agent.hcl", line: 1, col: 1 },
    ...(body === undefined ? {} : { body }),
  };
}

const PRODUCER = "pluggableharness.producer.name=gate";

describe("pluginEnvironment", () => {
  it("should let through PATH, HOME and what is named, where it is set", () => {
    const env = { PATH: "/bin", HOME: undefined, TOKEN: "t", SECRET: "s" };
    expect(pluginEnvironment(provider(["TOKEN", "UNSET", "__proto__"]), env, {})).toEqual({
      PATH: "/bin",
      TOKEN: "t",
      OTEL_RESOURCE_ATTRIBUTES: PRODUCER,
    });
  });

  it("should name the producer, percent-encoded, behind what the operator names", () => {
    const env = { OTEL_RESOURCE_ATTRIBUTES: "a=b" };
    const known = { category: "tool", version: "1.0, é=" };
    expect(pluginEnvironment(provider(["OTEL_RESOURCE_ATTRIBUTES"]), env, {}, known)["OTEL_RESOURCE_ATTRIBUTES"]).toBe(
      `a=b,pluggableharness.producer.category=tool,${PRODUCER},pluggableharness.producer.version=1.0%2C%20%C3%A9%3D`,
    );
  });

  it("should hand over the body that a provider has, and none that it has not", () => {
    const config = { directory: "./é", limits: [1, 2] };
    const env = { HOOKLEDGER_PROVIDER_CONFIG: "the host's own" };
    expect(pluginEnvironment(provider([], {}), env, config)["HOOKLEDGER_PROVIDER_CONFIG"]).toBe(JSON.stringify(config));
    expect(pluginEnvironment(provider([]), env, config)).not.toHaveProperty("HOOKLEDGER_PROVIDER_CONFIG");
  });
});

describe("startEnvironment", () => {
  it("should win over what is let through", () => {
    const passed = {
      PATH: "/bin",
      TMPDIR: "/x",
      COOKIE: "x",
      PLUGIN_CLIENT_CERT: "x",
      PLUGIN_MULTIPLEX_GRPC: "true",
      PLUGIN_OWN: "y",
    };
    const start = { cookie: { key: "COOKIE", value: "c" }, protocolVersion: 2, folder: "/f", certificate: null };
    const due = {
      PATH: "/bin",
      PLUGIN_OWN: "y",
      COOKIE: "c",
      PLUGIN_PROTOCOL_VERSIONS: "2",
      PLUGIN_UNIX_SOCKET_DIR: "/f",
      TMPDIR: "/f",
    };
    expect(startEnvironment(passed, start)).toEqual(due);
    expect(startEnvironment(passed, { ...start, certificate: "PEM" })).toEqual({ ...due, PLUGIN_CLIENT_CERT: "PEM" });
  });
});
