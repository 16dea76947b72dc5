/**
 * Plugins that somebody else has started, for debugging: `HOOKLEDGER_REATTACH_PROVIDERS` says where they listen, in the JSON that
 * Terraform's reattach variable has. They are reached like any address, and never ended.
 */

import { isIPv4 } from "node:net";
import { isAbsolute } from "node:path";
import type { Provider } from "../../config/types.js";
import { HookledgerError } from "../../errors.js";
import { isPlugin } from "./plugin-of.js";

export const REATTACH_VARIABLE = "HOOKLEDGER_REATTACH_PROVIDERS";

export type Attachment = {
  readonly network: "unix" | "tcp";
  /** Absolute socket path, or host:port of this machine. */
  readonly address: string;
};

/** UTF-16 units */
const MAX_TEXT = 64 * 1024;
const HINT = `A plugin started with --debug prints the variable as it is to be set.`;

/** By provider name. Throws HL_USAGE for a variable that is set and cannot be read. */
export function readAttachments(env: Readonly<Record<string, string | undefined>>): ReadonlyMap<string, Attachment> {
  const text = env[REATTACH_VARIABLE];
  if (text === undefined || text === "") return new Map();
  const entries = objectOf(text.length <= MAX_TEXT ? parsed(text) : undefined);
  if (entries === undefined) throw refused("is no JSON object of plugins by provider name");
  return new Map(Object.entries(entries).map(([name, entry]) => [name, attachment(name, objectOf(entry))]));
}

/**
 * The provider, to be reached where it listens; its source says so wherever it is told, in records too. One that is no plugin stays as
 * it is: a variable of the environment puts nothing in the place of a gate that is reached another way.
 */
export function attachedTo(provider: Provider, { network, address }: Attachment): Provider {
  if (!isPlugin(provider)) return provider;
  return {
    ...provider,
    sourceText: `${provider.sourceText}, reattached to ${network}:${address}`,
    source: { kind: "grpc", transport: network, target: address, insecure: false },
  };
}

type Json = { readonly [key: string]: unknown };

function attachment(name: string, entry: Json | undefined): Attachment {
  const label = JSON.stringify(name.slice(0, 64));
  if (entry === undefined) throw refused(`says nothing of ${label}`);
  if (entry["Protocol"] !== "grpc") throw refused(`has another protocol than "grpc" for ${label}`);
  const address = objectOf(entry["Addr"]);
  const [network, text] = [address?.["Network"], address?.["String"]];
  if (network === "unix" && typeof text === "string" && isAbsolute(text)) return { network, address: text };
  if (network === "tcp" && typeof text === "string" && isHere(text)) return { network, address: text };
  throw refused(
    `has no Addr for ${label} with Network "unix" and an absolute path, or "tcp" and a port of this machine`,
  );
}

/** Only numbers of the loopback and its name: anything else that looks like one is a name for a resolver. */
function isHere(address: string): boolean {
  const { host = "", port } = /^(?<host>[^:]+|\[::1\]):(?<port>[1-9]\d{0,4})$/.exec(address)?.groups ?? {};
  const isLoopback = host === "localhost" || host === "[::1]" || (isIPv4(host) && host.startsWith("127."));
  return isLoopback && Number(port) <= 65_535;
}

function objectOf(value: unknown): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refused(what: string): HookledgerError {
  return new HookledgerError("HL_USAGE", `${REATTACH_VARIABLE} ${what}`, { hint: HINT });
}
