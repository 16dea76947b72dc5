/**
 * What the adapter asks of the server, in the thread where its client runs. Everything above it (lanes, catalogue, archive, pages)
 * speaks this, and not the client.
 */

export type ServerEvent = {
  readonly stream: string;
  readonly revision: number;
  /** Commit position in the server's log. */
  readonly position: number;
  readonly id: string;
  readonly type: string;
  /** JSON events as parsed, anything else as bytes. Foreign. */
  readonly content:
    | { readonly kind: "json"; readonly data: unknown; readonly metadata: unknown }
    | { readonly kind: "bytes"; readonly data: Uint8Array };
};

export type ServerDraft = {
  /** UUID. */
  readonly id: string;
  readonly type: string;
  readonly content:
    | { readonly kind: "json"; readonly data: object; readonly metadata: object }
    | { readonly kind: "bytes"; readonly data: Uint8Array };
  /** Bytes of a JSON event, about, where they are known: for the bound on what is under way. */
  readonly size?: number;
};

/** Revision of the last event; "none": the stream must not exist; "any": not checked. */
export type Expected = number | "none" | "any";

export type Written = { readonly revision: number; readonly position: number };

/**
 * Every call ends by its own deadline. Errors thrown: HL_STORE_UNAVAILABLE (nothing was written: the server was not reached, or
 * refused), HL_STORE_DENIED, HL_STORE_CLOSED; reads also HL_STORE_CORRUPT (the server answers with what was not asked for); `append` also
 * HL_STORE_CONFLICT (wrong revision, as the server said: an earlier attempt may be what is there), HL_STORE_AMBIGUOUS (no answer).
 */
export interface ServerLog {
  /** At most `max` events; forward from a revision (inclusive) or the start, backward from the end. null: there is no such stream, or it was deleted. */
  readStream(
    stream: string,
    options:
      | { readonly direction: "forward"; readonly from: number; readonly max: number }
      | { readonly direction: "backward"; readonly max: number },
  ): Promise<readonly ServerEvent[] | null>;

  /**
   * Events of streams whose names begin with one of `prefixes`, behind `after` (exclusive; 0 = from the start). At most `max`, fewer where
   * they are large; none only at the end of the log.
   */
  readAll(options: {
    readonly after: number;
    readonly prefixes: readonly string[];
    readonly max: number;
  }): Promise<readonly ServerEvent[]>;

  /** All or nothing. Calls that are made one after the other arrive at the server in that order. */
  append(stream: string, expected: Expected, drafts: readonly ServerDraft[]): Promise<Written>;

  /** Soft: the stream can be written again, and goes on counting. `expected`: as with `append`. */
  deleteStream(stream: string, expected: number): Promise<void>;
}
