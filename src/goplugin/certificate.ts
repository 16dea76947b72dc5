/** Certificates as text: in the handshake line, and for Node's TLS. Light, unlike the making of one. */

import { X509Certificate } from "node:crypto";

/** As the handshake's sixth field has it: base64 without padding. */
export function encodeCertificate(der: Uint8Array): string {
  return Buffer.from(der).toString("base64").replace(/=+$/, "");
}

/** Null unless `text` is the unpadded base64 of one certificate's DER and of nothing more. */
export function decodeCertificate(text: string): Uint8Array | null {
  if (text.length > MAX_TEXT || !/^[A-Za-z0-9+/]+$/.test(text)) return null;
  const der = new Uint8Array(Buffer.from(text, "base64"));
  return encodeCertificate(der) === text && isCertificate(der) ? der : null;
}

/** characters; an RSA certificate of 16 384 bits has a third of it */
const MAX_TEXT = 16 * 1024;

/** Node reads the first certificate and ignores what follows it. */
function isCertificate(der: Uint8Array): boolean {
  try {
    return Buffer.compare(new X509Certificate(der).raw, der) === 0;
  } catch {
    return false;
  }
}

/** PEM, as Node's TLS takes it. */
export function certificatePem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** The one certificate in a PEM text, or null: none, more than one, or one that cannot be read. */
export function certificateOfPem(pem: string): Uint8Array | null {
  if (pem.length > MAX_TEXT || pem.split("-----BEGIN CERTIFICATE-----").length !== 2) return null;
  try {
    return new Uint8Array(new X509Certificate(pem).raw);
  } catch {
    return null;
  }
}
