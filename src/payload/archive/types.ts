/** How large payloads are kept: as a root under the payload's digest, and chunks that many payloads share. */

/** Bytes above which nothing is taken for a chunk: what is read at once is bounded, whoever has written it. Ours have up to 64 KiB. */
export const MAX_CHUNK_BYTES = 1024 * 1024;

/** A content-addressed piece: of a payload, or a node of the tree that puts one together. */
export type Chunk = {
  /** Lower-case hex SHA-256 over "hookledger/chunk/v1\0" and the bytes. */
  readonly hash: string;
  readonly bytes: Uint8Array;
};

/** What is kept of one payload. */
export type Cut = {
  /** Kept under the payload's digest: the bytes themselves, or, beginning with a zero byte (as no payload and no configuration does), a manifest. */
  readonly root: Uint8Array;
  /** Each hash once; what a node refers to stands before it. */
  readonly chunks: readonly Chunk[];
};

/** What a store has under a digest. */
export type BlobRead =
  /** Put together from chunks that are each what their hash says; the caller, who knows the domain, checks the digest of the whole. */
  | { readonly kind: "found"; readonly bytes: Uint8Array }
  /** Nothing was ever kept under this digest, or it was erased. */
  | { readonly kind: "missing" }
  /** Something is kept, and it does not make up a payload: says which part is missing or altered. */
  | { readonly kind: "damaged"; readonly detail: string };
