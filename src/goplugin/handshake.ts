/** The one line with which a plugin says where it listens. */

export type Handshake = {
  readonly coreVersion: number;
  readonly appVersion: number;
  readonly network: "unix" | "tcp";
  /** Socket path, or host:port. */
  readonly address: string;
  /** DER of the plugin's one-use certificate, or null without AutoMTLS. */
  readonly certificate: Uint8Array | null;
};
