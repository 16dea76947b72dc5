/** One-use certificates of AutoMTLS: each side makes its own, and trusts exactly the other's. */

/** A key that signs for one connection and is never written anywhere. */
export type Identity = {
  /** PEM, PKCS #8. */
  readonly key: string;
  /** PEM. */
  readonly certificate: string;
  readonly der: Uint8Array;
};
