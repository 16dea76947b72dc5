/** X.509 certificates for tests, made on the spot: P-256, signed with SHA-256, good for an hour. No openssl, nothing checked in. */

import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

export type Authority = { readonly name: string; readonly key: KeyObject; readonly pem: string };
export type Certificate = { readonly cert: string; readonly key: string };

export function authority(name: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const basicConstraints = extension("551d13", true, sequence(tlv(0x01, Buffer.from([0xff]))));
  return { name, key: privateKey, pem: certificate(name, privateKey, name, publicKey, [basicConstraints]) };
}

/** A certificate for `dnsName`, signed by `issuer`. */
export function issue(issuer: Authority, dnsName: string): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const altName = extension("551d11", false, sequence(tlv(0x82, Buffer.from(dnsName))));
  return {
    cert: certificate(issuer.name, issuer.key, dnsName, publicKey, [altName]),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** Writes PEM files into `folder` and returns their names by key. */
export function writePems<K extends string>(folder: string, pems: Readonly<Record<K, string>>): Record<K, string> {
  const files = Object.entries<string>(pems).map(([name, pem]) => {
    const file = join(folder, `${name}.pem`);
    writeFileSync(file, pem, { mode: 0o600 });
    return [name, file];
  });
  return Object.fromEntries(files) as Record<K, string>;
}

function certificate(
  issuer: string,
  issuerKey: KeyObject,
  subject: string,
  subjectKey: KeyObject,
  extensions: readonly Buffer[],
): string {
  const ecdsaWithSha256 = sequence(tlv(0x06, Buffer.from("2a8648ce3d040302", "hex")));
  const now = Date.now();
  const tbs = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    commonName(issuer),
    sequence(utcTime(now - 3_600_000), utcTime(now + 3_600_000)),
    commonName(subject),
    subjectKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(...extensions, keyIdentifier(subjectKey))),
  );
  const signature = sign("sha256", tbs, issuerKey);
  const der = sequence(tbs, ecdsaWithSha256, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function commonName(name: string): Buffer {
  const oid = tlv(0x06, Buffer.from("550403", "hex"));
  return sequence(tlv(0x31, sequence(oid, tlv(0x0c, Buffer.from(name)))));
}

function keyIdentifier(key: KeyObject): Buffer {
  const hash = createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();
  return extension("551d0e", false, tlv(0x04, hash));
}

function extension(oid: string, critical: boolean, value: Buffer): Buffer {
  const flag = critical ? [tlv(0x01, Buffer.from([0xff]))] : [];
  return sequence(tlv(0x06, Buffer.from(oid, "hex")), ...flag, tlv(0x04, value));
}

function utcTime(ms: number): Buffer {
  return tlv(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/\D/g, "").slice(2, 14)}Z`));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function tlv(tag: number, value: Buffer): Buffer {
  const { length } = value;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value]);
  return Buffer.concat([Buffer.from([tag, 0x82, length >> 8, length & 0xff]), value]);
}
