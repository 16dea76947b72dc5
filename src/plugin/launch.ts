/** Who started this process, and what for: a host, a developer with `--debug`, or somebody by hand. */

import { isAbsolute } from "node:path";
import { certificateOfPem, encodeCertificate } from "../goplugin/certificate.js";
import type { Handshake } from "../goplugin/handshake.js";
import { CORE_PROTOCOL_VERSION, PLUGIN_ENV } from "../goplugin/protocol.js";
import type { HookConfig } from "../subscribers/handlers.js";
import type { CheckedOptions } from "./options.js";
import { parseConfig } from "./provider-config.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** `hostCertificate`: DER of the host's, where AutoMTLS is asked for. `socketFolder`: undefined for the machine's own. */
export type Launch =
  | {
      readonly by: "host";
      readonly config: HookConfig;
      readonly hostCertificate: Uint8Array | null;
      readonly socketFolder: string | undefined;
    }
  | { readonly by: "developer"; readonly config: HookConfig }
  /** `message`: lines for a person; the process ends with code 1. */
  | { readonly by: "hand"; readonly message: string };

/** A host's cookie counts for more than `--debug`, so that a flag in a configuration hangs nobody. */
export function launchOf(options: CheckedOptions, args: readonly string[], env: Environment): Launch {
  const { cookie, name, protocolVersion } = options;
  const hosted = env[cookie.key] === cookie.value;
  if (!hosted && !args.includes("--debug")) return { by: "hand", message: explanation(options) };
  const config = parseConfig(env[PLUGIN_ENV.config]);
  if (config === null) return refusal(name, `${PLUGIN_ENV.config} is no JSON object`);
  if (!hosted) return { by: "developer", config };
  const versions = env[PLUGIN_ENV.protocolVersions] ?? "";
  if (versions !== "" && !versions.split(",").some((version) => Number(version.trim()) === protocolVersion)) {
    return refusal(
      name,
      `it speaks version ${protocolVersion} of the plugin protocol, and the host ${JSON.stringify(versions.slice(0, 100))}`,
    );
  }
  const pem = env[PLUGIN_ENV.clientCertificate] ?? "";
  const hostCertificate = pem === "" ? null : certificateOfPem(pem);
  if (pem !== "" && hostCertificate === null) {
    return refusal(name, `${PLUGIN_ENV.clientCertificate} is not one certificate in PEM`);
  }
  const folder = env[PLUGIN_ENV.socketFolder];
  const socketFolder = folder !== undefined && isAbsolute(folder) ? folder : undefined;
  return { by: "host", config, hostCertificate, socketFolder };
}

function refusal(name: string, why: string): Launch {
  return { by: "hand", message: `${name} cannot be started: ${why}\n` };
}

function explanation({ name, version }: CheckedOptions): string {
  return [
    `${name} ${version} is a plugin: a host starts it, and it does nothing by itself.`,
    "",
    "  In agent.hcl:   required_providers {",
    `                    ${name} = { source = "./path/to/this/file" }`,
    "                  }",
    "  To debug it:    start it with --debug, and give the host the variable that it prints",
    "",
  ].join("\n");
}

/** The one line that a host waits for, with the line's end. */
export function handshakeLine({ appVersion, network, address, certificate }: Omit<Handshake, "coreVersion">): string {
  const text = certificate === null ? "" : encodeCertificate(certificate);
  return `${CORE_PROTOCOL_VERSION}|${appVersion}|${network}|${address}|grpc|${text}\n`;
}

/** What a developer puts into the host's shell. */
export function reattachLine({ name, protocolVersion }: CheckedOptions, address: string): string {
  const plugin = {
    Protocol: "grpc",
    ProtocolVersion: protocolVersion,
    Pid: process.pid,
    Test: true,
    Addr: { Network: "unix", String: address },
  };
  const json = JSON.stringify({ [name]: plugin }).replaceAll("'", "'\\''");
  return `HOOKLEDGER_REATTACH_PROVIDERS='${json}'\n`;
}
