import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { certificateOfPem, certificatePem, decodeCertificate, encodeCertificate } from "#src/goplugin/certificate.js";
import { createIdentity, type Identity } from "#src/goplugin/identity.js";

const DAY_MS = 24 * 60 * 60 * 1000;

let one: Identity;
let other: Identity;

beforeAll(async () => {
  [one, other] = await Promise.all([createIdentity(), createIdentity()]);
});

describe("createIdentity", () => {
  it("should make a self-signed authority for localhost, good for both sides", () => {
    const certificate = new X509Certificate(one.der);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.checkIssued(certificate)).toBe(true);
    expect(certificate.ca).toBe(true);
    expect(certificate.checkHost("localhost")).toBe("localhost");
    expect([certificate.subject, certificate.issuer]).toEqual(["CN=localhost", "CN=localhost"]);
    expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
    // serverAuth and clientAuth
    expect([...certificate.keyUsage].toSorted()).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
    expect(certificate.toString()).toBe(one.certificate);
  });

  it("should outlive its process, and be valid on a clock that is set back", () => {
    const { validFrom, validTo } = new X509Certificate(one.der);
    expect(Date.parse(validFrom)).toBeLessThan(Date.now() - 0.9 * DAY_MS);
    expect(Date.parse(validTo)).toBeGreaterThan(Date.now() + 3_000 * DAY_MS);
  });

  it("should be another one every time", () => {
    expect(new X509Certificate(one.der).serialNumber).not.toBe(new X509Certificate(other.der).serialNumber);
    expect(one.key).not.toBe(other.key);
  });

  it("should satisfy openssl at its strictest", async () => {
    const folder = mkdtempSync(join(tmpdir(), "identity-"));
    const file = join(folder, "one.pem");
    writeFileSync(file, one.certificate);
    for (const purpose of ["sslserver", "sslclient"]) {
      const args = [
        "verify",
        "-x509_strict",
        "-purpose",
        purpose,
        "-verify_hostname",
        "localhost",
        "-CAfile",
        file,
        file,
      ];
      await expect(promisify(execFile)("openssl", args)).resolves.toMatchObject({ stdout: `${file}: OK\n` });
    }
    rmSync(folder, { recursive: true });
  });

  describe("in a handshake", () => {
    const server = createServer({ requestCert: true, rejectUnauthorized: true }, (socket) => socket.end("hello"));

    beforeAll(async () => {
      server.setSecureContext({ key: one.key, cert: one.certificate, ca: other.certificate });
      await once(server.listen(0, "127.0.0.1"), "listening");
    });
    afterAll(() => server.close());

    function greet(me: Identity, trusted: Identity): Promise<string> {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      const { key, certificate: cert } = me;
      const socket: TLSSocket = connect({
        port,
        host: "127.0.0.1",
        servername: "localhost",
        key,
        cert,
        ca: trusted.certificate,
      });
      return new Promise((resolve, reject) => {
        socket.on("data", (data) => resolve(String(data)));
        socket.on("error", reject).on("close", () => reject(new Error("closed")));
      });
    }

    it("should be taken by the peer that trusts it, both ways", async () => {
      await expect(greet(other, one)).resolves.toBe("hello");
    });

    it("should be refused by either side that trusts another one", async () => {
      await expect(greet(other, other)).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
      await expect(greet(one, one)).rejects.toThrow();
    });
  });
});

describe("certificates as text", () => {
  it("should be base64 without padding, and come back", () => {
    const text = encodeCertificate(one.der);
    expect(text).toMatch(/^[A-Za-z0-9+/]+$/);
    expect(decodeCertificate(text)).toEqual(one.der);
    expect(certificateOfPem(one.certificate)).toEqual(one.der);
    expect(certificatePem(one.der)).toBe(one.certificate);
  });

  it("should be refused with anything more or less", () => {
    const text = encodeCertificate(one.der);
    const trailing = encodeCertificate(Buffer.concat([one.der, Buffer.from([0])]));
    const others = ["", "=", `${text}=`, ` ${text}`, text.slice(0, -8), trailing, "AAAA", "A".repeat(20_000)];
    for (const refused of others) expect(decodeCertificate(refused)).toBeNull();
  });

  it("should be one certificate in PEM", () => {
    for (const pem of ["", one.key, one.certificate + other.certificate, one.certificate.replace("M", "!")]) {
      expect(certificateOfPem(pem)).toBeNull();
    }
  });
});
