/** One-use certificates of AutoMTLS: each side makes its own, and trusts exactly the other's. */

import { createHash, generateKeyPair, randomBytes, sign } from "node:crypto";
import { promisify } from "node:util";
import { AsnConvert, OctetString } from "@peculiar/asn1-schema";
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from "@peculiar/asn1-x509";
import { certificatePem } from "./certificate.js";
import { TLS_NAME } from "./protocol.js";

/** A key that signs for one connection and is never written anywhere. */
export type Identity = {
  /** PEM, PKCS #8. */
  readonly key: string;
  /** PEM. */
  readonly certificate: string;
  readonly der: Uint8Array;
};

const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";
const COMMON_NAME = "2.5.4.3";

/** Clocks that are set back while a plugin runs must not make its certificate one of the future. */
const PAST_MS = 24 * 60 * 60 * 1000;
/** The certificate ends with its process; a date that came first would only break reconnecting. */
const FUTURE_MS = 10 * 365 * 24 * 60 * 60 * 1000;

/**
 * A fresh P-256 key and its self-signed certificate for `localhost`, for either side of a connection. It is its own authority,
 * because Go's library takes the peer's certificate for the root that it must lead to.
 */
export async function createIdentity(): Promise<Identity> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const tbsCertificate = describe(publicKey, algorithm);
  const signature = sign("sha256", Buffer.from(AsnConvert.serialize(tbsCertificate)), privateKey);
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: algorithm,
    signatureValue: toArrayBuffer(signature),
  });
  const der = new Uint8Array(AsnConvert.serialize(certificate));
  return { key: privateKey, certificate: certificatePem(der), der };
}

function describe(publicKey: Buffer, signature: AlgorithmIdentifier): TBSCertificate {
  const now = Date.now();
  const subject = new Name([
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({ type: COMMON_NAME, value: new AttributeValue({ utf8String: TLS_NAME }) }),
    ]),
  ]);
  const subjectPublicKeyInfo = AsnConvert.parse(publicKey, SubjectPublicKeyInfo);
  const keyIdentifier = createHash("sha1").update(Buffer.from(subjectPublicKeyInfo.subjectPublicKey)).digest();
  return new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(),
    signature,
    issuer: subject,
    validity: new Validity({ notBefore: new Date(now - PAST_MS), notAfter: new Date(now + FUTURE_MS) }),
    subject,
    subjectPublicKeyInfo,
    extensions: new Extensions([
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: true }), true),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign), true),
      extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_clientAuth, id_kp_serverAuth])),
      extension(id_ce_subjectAltName, new SubjectAlternativeName([new GeneralName({ dNSName: TLS_NAME })])),
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(toArrayBuffer(keyIdentifier))),
    ]),
  });
}

/** 127 random bits: DER integers are signed, and a serial number is positive and has no leading zeros. */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return toArrayBuffer(bytes);
}

function extension(extnID: string, value: object, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function toArrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
