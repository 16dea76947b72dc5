/** TLS of AutoMTLS: our one-use certificate, and the plugin's own and no other. */

import { createSecureContext, type PeerCertificate, type SecureContext } from "node:tls";
import { ChannelCredentials } from "@grpc/grpc-js";
import { certificatePem } from "../../goplugin/certificate.js";
import type { Identity } from "../../goplugin/identity.js";

export type Pin = {
  readonly secureContext: SecureContext;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
};

/** `leaf`: DER of the certificate that the plugin's handshake names. */
export function pinTo(leaf: Uint8Array, { key, certificate }: Identity): Pin {
  return {
    secureContext: createSecureContext({ ca: certificatePem(leaf), cert: certificate, key, minVersion: "TLSv1.2" }),
    // Also a certificate that the pinned one has signed leads to it, and is another one.
    checkServerIdentity: (_host, { raw }) =>
      Buffer.compare(raw, leaf) === 0 ? undefined : new Error("certificate differs from the one in the handshake"),
  };
}

export function pinnedCredentials({ secureContext, checkServerIdentity }: Pin): ChannelCredentials {
  return ChannelCredentials.createFromSecureContext(secureContext, { checkServerIdentity });
}
