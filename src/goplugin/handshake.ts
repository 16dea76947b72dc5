/** The one line with which a plugin says where it listens. */

import { isIPv4 } from "node:net";
import { decodeCertificate, encodeCertificate } from "./certificate.js";
import { CORE_PROTOCOL_VERSION } from "./protocol.js";
import { type Quote, quoted } from "./quote.js";

export type Handshake = {
  readonly coreVersion: number;
  readonly appVersion: number;
  readonly network: "unix" | "tcp";
  /** Socket path, or host:port. */
  readonly address: string;
  /** DER of the plugin's one-use certificate, or null without AutoMTLS. */
  readonly certificate: Uint8Array | null;
};

/** `fault`: one bounded sentence that quotes what was seen, escaped. */
export type ParsedHandshake =
  | { readonly ok: true; readonly handshake: Handshake }
  | { readonly ok: false; readonly fault: string };

/** bytes of the line, its end not counted */
export const MAX_HANDSHAKE_BYTES = 64 * 1024;
/** What fits into a `sockaddr_un` beside its NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

/** `line` without its end. Any application version is taken: which one is due is the caller's to know. Never throws. */
export function parseHandshake(line: string, quote: Quote = quoted): ParsedHandshake {
  try {
    return { ok: true, handshake: read(line, quote) };
  } catch (error) {
    if (error instanceof Fault) return { ok: false, fault: error.message };
    throw error;
  }
}

/** The line without its end. Throws RangeError on what `parseHandshake` would refuse. */
export function formatHandshake(handshake: Handshake): string {
  const { coreVersion, appVersion, network, address, certificate } = handshake;
  const leaf = certificate === null ? "" : encodeCertificate(certificate);
  const line = [coreVersion, appVersion, network, address, "grpc", leaf].join("|");
  const parsed = parseHandshake(line);
  if (!parsed.ok) throw new RangeError(parsed.fault);
  return line;
}

class Fault extends Error {}

function read(line: string, quote: Quote): Handshake {
  if (Buffer.byteLength(line) > MAX_HANDSHAKE_BYTES) {
    throw new Fault(`the line ${quote(line)} is longer than ${MAX_HANDSHAKE_BYTES} bytes`);
  }
  const fields = line.split("|");
  const [core, app, network, address, protocol, leaf = "", multiplex = ""] = fields;
  if (core === undefined || app === undefined || !/^\d+$/.test(core)) {
    throw new Fault(`there is a stray line where the handshake line is due: ${quote(line)}`);
  }
  const refuse = (what: string) => new Fault(`the handshake line ${quote(line)} ${what}`);
  if (core !== String(CORE_PROTOCOL_VERSION)) {
    throw refuse(`names core protocol version ${quote(core, 20)}, and ${CORE_PROTOCOL_VERSION} is spoken here`);
  }
  if (!/^(?:0|[1-9]\d{0,9})$/.test(app))
    throw refuse(`names the protocol version ${quote(app, 20)}, which is no number`);
  if (protocol === "netrpc" || (fields.length === 4 && address !== undefined)) {
    throw refuse("is of a net/rpc plugin, and only gRPC is spoken here");
  }
  if (network === undefined || address === undefined || protocol === undefined || fields.length > 7) {
    throw refuse(`has ${fields.length} fields where 5 to 7 are due`);
  }
  if (protocol !== "grpc") throw refuse(`names the protocol ${quote(protocol, 20)}, and only grpc is spoken here`);
  if (network !== "unix" && network !== "tcp") {
    throw refuse(`names the network ${quote(network, 20)} where unix or tcp is due`);
  }
  const unfit = network === "unix" ? unfitPath(address) : unfitHost(address);
  if (unfit !== null) throw refuse(unfit);
  if (multiplex !== "" && multiplex !== "false") {
    throw refuse(
      multiplex === "true"
        ? "asks for multiplexing, which was not offered"
        : `has the multiplex flag ${quote(multiplex, 20)}`,
    );
  }
  const certificate = leaf === "" ? null : decodeCertificate(leaf);
  if (certificate === null && leaf !== "") {
    throw refuse("has a sixth field that is no certificate in base64 without padding");
  }
  return { coreVersion: CORE_PROTOCOL_VERSION, appVersion: Number(app), network, address, certificate };
}

function unfitPath(path: string): string | null {
  if (!path.startsWith("/") || path.includes("\0")) return "names a socket that is no absolute path";
  const bytes = Buffer.byteLength(path);
  if (bytes <= MAX_SOCKET_PATH_BYTES) return null;
  return `names a socket path of ${bytes} bytes, and ${MAX_SOCKET_PATH_BYTES} are possible`;
}

function unfitHost(address: string): string | null {
  const { host, port } = /^(?<host>.+):(?<port>[1-9]\d{0,4})$/s.exec(address)?.groups ?? {};
  if (host !== undefined && isLoopback(host) && Number(port) <= 65_535) return null;
  return "names an address that is no host:port of the loopback";
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || (isIPv4(host) && host.startsWith("127."));
}
