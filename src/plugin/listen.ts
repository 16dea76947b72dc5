/** Where a plugin listens: a socket that only its own user can reach, and under AutoMTLS only its own host. */

import { constants } from "node:crypto";
import { chmodSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { createServer as createPlainServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { HookledgerError } from "../errors.js";
import { certificatePem } from "../goplugin/certificate.js";
import { thrownText } from "../subscribers/fault.js";

export type Listener = {
  /** Absolute path of the socket. */
  readonly address: string;
  /** DER of its own one-use certificate, or null for a plain one. */
  readonly certificate: Uint8Array | null;
  /** Takes no further connections, and removes the socket. At once; idempotent. */
  close(): void;
};

type Wanted = {
  /** Where the socket's own folder goes; the machine's temporary folder by default. */
  readonly folder: string | undefined;
  /** DER: the one certificate that a peer may come with. Null: plain. */
  readonly hostCertificate: Uint8Array | null;
  readonly connected: (socket: Socket) => void;
};

/** bytes; the least that systems have room for, without the NUL */
const MAX_PATH = 103;
const SOCKET = "socket";

/** Throws HL_USAGE for a folder that leaves no room for a socket. */
export async function listen({ folder = tmpdir(), hostCertificate, connected }: Wanted): Promise<Listener> {
  const own = await ownFolder(folder);
  const address = join(own, SOCKET);
  const remove = (): void => rmSync(own, { recursive: true, force: true });
  try {
    const { server, certificate } = await serverFor(hostCertificate, connected);
    await listening(server, address);
    chmodSync(address, 0o600);
    process.once("exit", remove);
    const close = (): void => {
      server.close();
      process.off("exit", remove);
      remove();
    };
    return { address, certificate, close };
  } catch (error) {
    remove();
    throw error;
  }
}

/** 0700, as `mkdtemp` makes it. */
async function ownFolder(folder: string): Promise<string> {
  const prefix = join(folder, "plugin-");
  if (Buffer.byteLength(join(`${prefix}XXXXXX`, SOCKET)) > MAX_PATH) {
    throw refused(`the path of ${folder} is too long for a socket in it`);
  }
  try {
    return await mkdtemp(prefix);
  } catch (error) {
    throw refused(`there can be no socket in ${folder}: ${thrownText(error)}`, error);
  }
}

function refused(what: string, cause?: unknown): HookledgerError {
  return new HookledgerError("HL_USAGE", `servePlugin: ${what}`, { hint: "TMPDIR names the folder.", cause });
}

async function serverFor(
  hostCertificate: Uint8Array | null,
  connected: (socket: Socket) => void,
): Promise<{ readonly server: Server; readonly certificate: Uint8Array | null }> {
  if (hostCertificate === null) return { server: createPlainServer(connected), certificate: null };
  // Loaded only here: it is a third of a plugin's start.
  const { createIdentity } = await import("../goplugin/identity.js");
  const { key, certificate, der } = await createIdentity();
  const server = createTlsServer(
    {
      key,
      cert: certificate,
      ca: certificatePem(hostCertificate),
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: "TLSv1.2",
      ALPNProtocols: ["h2"],
      // A resumed session would show no certificate.
      secureOptions: constants.SSL_OP_NO_TICKET,
    },
    (socket) => {
      if (isPinned(socket, hostCertificate)) connected(socket);
      else socket.destroy();
    },
  );
  return { server, certificate: der };
}

/** The host's certificate is an authority, and must not vouch for another one. */
function isPinned(socket: TLSSocket, hostCertificate: Uint8Array): boolean {
  const peer = socket.getPeerX509Certificate();
  return peer !== undefined && Buffer.compare(peer.raw, hostCertificate) === 0;
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
