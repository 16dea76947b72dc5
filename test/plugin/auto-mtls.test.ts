import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { ChannelCredentials, credentials, status as Status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { certificatePem, decodeCertificate } from "#src/goplugin/certificate.js";
import { createIdentity, type Identity } from "#src/goplugin/identity.js";
import { issue } from "../support/certificates.js";
import { act, HOST_ENV, PluginProcess } from "./plugin-process.js";

let plugin: PluginProcess;
let host: Identity;
let pinned: string;

beforeAll(async () => {
  host = await createIdentity();
  plugin = new PluginProcess({ env: { ...HOST_ENV, PLUGIN_CLIENT_CERT: host.certificate } });
  const [, , , , , text = ""] = await plugin.handshake();
  pinned = certificatePem(decodeCertificate(text) ?? new Uint8Array());
});

afterAll(() => plugin.stop());

function as({ key, certificate }: Pick<Identity, "key" | "certificate">, ca = pinned): ChannelCredentials {
  return ChannelCredentials.createFromSecureContext(createSecureContext({ ca, key, cert: certificate }));
}

describe("AutoMTLS of a plugin", () => {
  it("should show a certificate of its own, and serve the host whose certificate it was given", async () => {
    expect(new X509Certificate(pinned).subject).toBe("CN=localhost");
    expect(pinned).not.toBe(host.certificate);
    await expect(act(await plugin.client(as(host)), "allow")).resolves.toBeDefined();
  });

  it.each([
    ["another one-use certificate", async () => as(await createIdentity())],
    ["no certificate", async () => credentials.createSsl(Buffer.from(pinned))],
    ["no TLS", async () => credentials.createInsecure()],
    [
      "a certificate that the host's own has signed",
      async () => {
        const signed = issue({ name: "localhost", key: createPrivateKey(host.key), pem: host.certificate }, "impostor");
        return as({ key: signed.key, certificate: signed.cert });
      },
    ],
  ])("should refuse a peer with %s", async (_name, secure) => {
    const client = await plugin.client(await secure());
    await expect(act(client, "allow")).rejects.toMatchObject({ code: Status.UNAVAILABLE });
  });
});
