/** The URL of an EventStoreDB or KurrentDB server or cluster, read strictly. Nothing of its user name or password leaves this module but as credentials. */
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { HookledgerError } from "../../errors.js";

export type Endpoint = { readonly address: string; readonly port: number };

export type NodePreference = "leader" | "follower" | "random" | "read_only_replica";

/** What a connection is made from; can be handed to another thread. */
export type ServerAddress = {
  /** As the user wrote it, without user name and password: for messages. */
  readonly shown: string;
  /** One server, or the members to ask for the cluster's. */
  readonly hosts: readonly Endpoint[];
  readonly discover: boolean;
  /** null: unencrypted. */
  readonly tls: Tls | null;
  readonly credentials: { readonly username: string; readonly password: string } | null;
  readonly connectionName: string;
  readonly nodePreference: NodePreference;
  readonly maxDiscoverAttempts: number;
  /** ms */
  readonly discoveryInterval: number;
  /** s */
  readonly gossipTimeout: number;
  /** ms; -1: never. */
  readonly keepAliveInterval: number;
  /** ms; -1: none. */
  readonly keepAliveTimeout: number;
  /** ms that one call may take. */
  readonly defaultDeadline: number;
};

export type Tls = {
  readonly verify: boolean;
  /** PEM. */
  readonly ca?: Uint8Array;
  readonly identity?: { readonly cert: Uint8Array; readonly key: Uint8Array };
};

const SCHEME = /^(?:esdb|kurrentdb)(\+discover)?:\/\//;
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])$/;
const DEFAULT_PORT = 2113;
const MAX_HOSTS = 64;
const HINT =
  "Write esdb://[user:password@]host:port[?tls=false], or esdb+discover:// with a name that resolves to a cluster.";

export function isServerUrl(url: string): boolean {
  return /^(?:esdb|kurrentdb)(?:\+discover)?:/.test(url);
}

/** Throws HL_STORE_URL for what cannot be followed to the letter, also where a file it names cannot be read. */
export function parseServerUrl(url: string): ServerAddress {
  const scheme = SCHEME.exec(url);
  if (scheme === null) throw refused("the URL of an EventStoreDB server has two slashes behind its scheme", HINT);
  const query = url.indexOf("?");
  // Whatever is named below could be a piece of the password.
  if (query >= 0 && url.includes("@", query)) {
    const hint = "In a user name or a password, ? is %3F and @ is %40; in a setting, @ is %40.";
    throw refused("the store URL has an @ behind a ?", hint);
  }
  const location = url.slice(scheme[0].length, query < 0 ? undefined : query).replace(/\/$/, "");
  const at = location.lastIndexOf("@");
  const hosts = location.slice(at + 1);
  const settings = readSettings(query < 0 ? "" : url.slice(query + 1));
  const endpoints = readHosts(hosts);
  const discover = scheme[1] !== undefined || endpoints.length > 1;
  const tls = settings.flag("tls", true) ? readTls(settings) : refuseTls(settings);
  return {
    shown: `${scheme[0]}${hosts}${query < 0 ? "" : url.slice(query)}`,
    hosts: endpoints,
    discover,
    tls,
    credentials: at < 0 ? null : readCredentials(location.slice(0, at)),
    connectionName: settings.text("connectionName") ?? "hookledger",
    nodePreference: readPreference(settings),
    maxDiscoverAttempts: settings.whole("maxDiscoverAttempts", 10, 1, 1_000_000),
    discoveryInterval: settings.whole("discoveryInterval", 100, 1, 3_600_000),
    gossipTimeout: settings.whole("gossipTimeout", 5, 1, 3600),
    keepAliveInterval: settings.whole("keepAliveInterval", 10_000, -1, 3_600_000),
    keepAliveTimeout: settings.whole("keepAliveTimeout", 10_000, -1, 3_600_000),
    defaultDeadline: settings.whole("defaultDeadline", 10_000, 1, 3_600_000),
  };
}

/** Names the server in messages: host:port, or the first of several. */
export function placeOf({ hosts }: ServerAddress): string {
  const [first] = hosts;
  if (first === undefined) return "the server";
  const place = `${first.address}:${first.port}`;
  return hosts.length > 1 ? `${place} and ${hosts.length - 1} more` : place;
}

function readHosts(text: string): readonly Endpoint[] {
  const hosts = text.split(",").map(readHost);
  if (hosts.length > MAX_HOSTS) throw refused(`the store URL names more than ${MAX_HOSTS} hosts`, HINT);
  return hosts;
}

function readHost(text: string): Endpoint {
  const colon = text.startsWith("[") ? text.indexOf("]:") + 1 : text.indexOf(":");
  const address = colon <= 0 ? text : text.slice(0, colon);
  const port = colon <= 0 ? DEFAULT_PORT : wholeNumber(text.slice(colon + 1));
  if (!HOST.test(address)) throw refused("the store URL names no host where one is expected", HINT);
  if (port === null || port < 1 || port > 65_535) {
    throw refused(`the port of ${address} is no number from 1 to 65535`, HINT);
  }
  return { address, port };
}

function readCredentials(text: string): { readonly username: string; readonly password: string } {
  const colon = text.indexOf(":");
  const hint = "Write user:password@ with every special character percent-encoded.";
  if (colon <= 0) throw refused("the store URL has a user name without a password, or the reverse", hint);
  const username = decoded(text.slice(0, colon));
  const password = decoded(text.slice(colon + 1));
  if (username === null || password === null || password === "") {
    throw refused("the user name or the password of the store URL cannot be read", hint);
  }
  return { username, password };
}

function readPreference(settings: Settings): NodePreference {
  const text = settings.text("nodePreference");
  switch (text?.toLowerCase().replaceAll(/[_-]/g, "")) {
    case undefined:
    case "leader":
      return "leader";
    case "follower":
      return "follower";
    case "random":
      return "random";
    case "readonlyreplica":
      return "read_only_replica";
    default:
      throw refused(
        "nodePreference of the store URL is no kind of node",
        "Write leader, follower, random or readOnlyReplica.",
      );
  }
}

function readTls(settings: Settings): Tls {
  const verify = settings.flag("tlsVerifyCert", true);
  const ca = readFile(settings, "tlsCAFile");
  const cert = readFile(settings, "userCertFile");
  const key = readFile(settings, "userKeyFile");
  if ((cert === undefined) !== (key === undefined)) {
    throw refused("userCertFile and userKeyFile go together", "Name both, or neither.");
  }
  const tls = {
    verify,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { identity: { cert, key } }),
  };
  try {
    createSecureContext({ ca: ca && Buffer.from(ca), cert: cert && Buffer.from(cert), key: key && Buffer.from(key) });
  } catch {
    throw refused(
      "the certificates or the key of the store URL cannot be used",
      "They have to be PEM, the key without a passphrase.",
    );
  }
  return tls;
}

/** A certificate beside `tls=false` is a mistake that would go unnoticed. */
function refuseTls(settings: Settings): null {
  for (const name of ["tlsVerifyCert", "tlsCAFile", "userCertFile", "userKeyFile"] as const) {
    if (settings.text(name) !== undefined) {
      throw refused(`${name} has no effect with tls=false`, "Take one of the two out.");
    }
  }
  return null;
}

function readFile(settings: Settings, name: "tlsCAFile" | "userCertFile" | "userKeyFile"): Uint8Array | undefined {
  const path = settings.text(name);
  if (path === undefined) return undefined;
  try {
    return new Uint8Array(readFileSync(path));
  } catch (error) {
    const why = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw refused(
      `the file that ${name} names cannot be read${why}`,
      "A relative path starts at the working directory.",
    );
  }
}

const NAMES = [
  "tls",
  "tlsVerifyCert",
  "tlsCAFile",
  "userCertFile",
  "userKeyFile",
  "connectionName",
  "maxDiscoverAttempts",
  "discoveryInterval",
  "gossipTimeout",
  "nodePreference",
  "keepAliveInterval",
  "keepAliveTimeout",
  "defaultDeadline",
  "throwOnAppendFailure",
] as const;
type Name = (typeof NAMES)[number];
const BY_LOWER_CASE: ReadonlyMap<string, Name> = new Map(NAMES.map((name) => [name.toLowerCase(), name]));

function readSettings(query: string): Settings {
  const values = new Map<Name, string>();
  for (const part of query === "" ? [] : query.split("&")) {
    const equals = part.indexOf("=");
    const written = equals < 0 ? part : part.slice(0, equals);
    const name = BY_LOWER_CASE.get(written.toLowerCase());
    if (name === undefined) {
      const known = NAMES.filter((each) => each !== "throwOnAppendFailure").join(", ");
      throw refused(
        `the store URL has a setting ${JSON.stringify(written.slice(0, 40))} that nobody knows`,
        `There are ${known}.`,
      );
    }
    const value = equals < 0 ? null : decoded(part.slice(equals + 1));
    if (value === null || value === "") throw refused(`${name} of the store URL has no value`, `Write ${name}=….`);
    if (values.has(name)) throw refused(`the store URL sets ${name} twice`, "Leave one of the two.");
    values.set(name, value);
  }
  const settings = new Settings(values);
  if (!settings.flag("throwOnAppendFailure", true)) {
    throw refused(
      "throwOnAppendFailure=false cannot be used: the client then reports a wrong revision for an append that was refused",
      "Take it out.",
    );
  }
  return settings;
}

class Settings {
  readonly #values: ReadonlyMap<Name, string>;

  constructor(values: ReadonlyMap<Name, string>) {
    this.#values = values;
  }

  text(name: Name): string | undefined {
    return this.#values.get(name);
  }

  flag(name: Name, otherwise: boolean): boolean {
    const value = this.#values.get(name)?.toLowerCase();
    if (value === undefined) return otherwise;
    if (value !== "true" && value !== "false")
      throw refused(`${name} of the store URL is neither true nor false`, `Write ${name}=true or ${name}=false.`);
    return value === "true";
  }

  whole(name: Name, otherwise: number, least: number, most: number): number {
    const value = this.#values.get(name);
    if (value === undefined) return otherwise;
    const number = wholeNumber(value);
    if (number === null || number < least || number > most) {
      throw refused(
        `${name} of the store URL is no whole number from ${least} to ${most}`,
        `Write ${name}=${otherwise}, or nothing.`,
      );
    }
    return number;
  }
}

function wholeNumber(text: string): number | null {
  return /^-?[0-9]{1,9}$/.test(text) ? Number(text) : null;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function refused(message: string, hint: string): HookledgerError {
  return new HookledgerError("HL_STORE_URL", message, { hint });
}
