import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Server } from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { createIdentity, type Identity } from "#src/goplugin/identity.js";
import { pinTo } from "#src/subscribers/plugin/pin.js";
import { type Authority, authority, issue } from "../../support/certificates.js";

let own: Identity;
let plugin: Authority;
const servers: Server[] = [];
beforeAll(async () => {
  own = await createIdentity();
  plugin = authority("the plugin");
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** What a host that has pinned the authority's own certificate makes of a plugin that presents `cert`. */
async function greeted(cert: string, key: string): Promise<string> {
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false });
  servers.push(server);
  server.on("tlsClientError", () => {});
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const { secureContext, checkServerIdentity } = pinTo(new X509Certificate(plugin.pem).raw, own);
  const socket = connect({ port, host: "127.0.0.1", servername: "localhost", secureContext, checkServerIdentity });
  try {
    await once(socket, "secureConnect");
    return "trusted";
  } catch (error) {
    return (error as Error).message;
  } finally {
    socket.destroy();
  }
}

function pem(key: Authority["key"]): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

describe("pinTo", () => {
  it("should trust the certificate that the handshake names", async () => {
    const named = issue(plugin, "localhost");
    expect(named.cert).not.toBe(plugin.pem);
    expect(await greeted(plugin.pem, pem(plugin.key))).toBe("trusted");
  });

  it("should trust no other one that the named one has signed", async () => {
    const { cert, key } = issue(plugin, "localhost");
    expect(await greeted(cert + plugin.pem, key)).toBe("certificate differs from the one in the handshake");
  });

  it("should trust nobody who merely bears the name", async () => {
    const stranger = authority("the plugin");
    expect(await greeted(stranger.pem, pem(stranger.key))).not.toBe("trusted");
  });
});
