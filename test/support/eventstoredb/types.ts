/** The words that the parts of the double share. */

/** An event as a client proposes it. */
export type Proposed = {
  /** UUID, lower case. */
  readonly id: string;
  readonly type: string;
  readonly json: boolean;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
};

export type Recorded = Proposed & {
  readonly stream: string;
  readonly revision: number;
  /** Commit and prepare position. */
  readonly position: number;
  /** ms since 1970. */
  readonly created: number;
};

/** Revision of the last event, or one of the server's special revisions. */
export type Expected = number | "none" | "any" | "exists";

/** What the writer's rules say of an append. */
export type Decision =
  | { readonly kind: "write"; readonly undelete: boolean }
  | { readonly kind: "repeat"; readonly last: number }
  | { readonly kind: "wrong-version" }
  | { readonly kind: "deleted" };

/** A stream as the writer's rules see it. */
export type StreamState = {
  /** Revision of the last event; -1: none. A soft-deleted stream goes on counting. */
  readonly last: number;
  readonly tombstoned: boolean;
  readonly softDeleted: boolean;
  readonly hasMetadata: boolean;
  /** Id of the event at a revision, hidden or not. */
  idAt(revision: number): string | undefined;
  /** Revision in this stream under which an id was written last; undefined also if a later write of it went elsewhere. */
  revisionOf(id: string): number | undefined;
};

export type Appended =
  /** `position` is null for a repetition of events that are hidden by now. */
  | {
      readonly kind: "written" | "repeated";
      readonly revision: number;
      readonly position: number | null;
      readonly bytes: number;
    }
  | { readonly kind: "wrong-version"; readonly current: number }
  | { readonly kind: "deleted" };

export type Removed =
  | { readonly kind: "removed"; readonly position: number }
  | { readonly kind: "wrong-version"; readonly current: number }
  | { readonly kind: "deleted" };

export type StreamRead =
  | { readonly kind: "events"; readonly events: readonly Recorded[] }
  | { readonly kind: "not-found" }
  | { readonly kind: "deleted" };

export type StreamRange = {
  readonly direction: "forwards" | "backwards";
  readonly from: number | "start" | "end";
  readonly max: number;
};

export type Filter = {
  readonly on: "stream" | "type";
  readonly test: (text: string) => boolean;
  /** Events looked at between two checkpoints of a subscription. */
  readonly checkpointEvery: number;
};

export type Method =
  | "append"
  | "batchAppend"
  | "read"
  | "subscribe"
  | "delete"
  | "tombstone"
  | "gossip"
  | "serverFeatures";

/** A call as faults and counters see it. `stream` is "$all" or "" where there is no stream. */
export type CallInfo = {
  readonly method: Method;
  readonly stream: string;
  /** Of an append. */
  readonly events?: readonly Proposed[];
  readonly expected?: Expected;
};

/** arrived: nothing was done yet. part: one message of an append that is not complete. done: done, and not answered. */
export type Point = "arrived" | "part" | "done";

/** An end that the call did not earn. */
export type Failure =
  | { readonly kind: "unavailable" }
  | { readonly kind: "timeout" }
  | { readonly kind: "denied" }
  | { readonly kind: "not-leader"; readonly leader: Endpoint | null };

export type Outcome =
  | { readonly kind: "go-on" }
  | { readonly kind: "silence" }
  | { readonly kind: "cut" }
  | { readonly kind: "fail"; readonly failure: Failure };

export type Endpoint = { readonly address: string; readonly port: number };

export type Target = {
  readonly method?: Method | readonly Method[];
  readonly stream?: string | RegExp;
  readonly where?: (call: CallInfo) => boolean;
  /** Matching calls that are left alone first. */
  readonly skip?: number;
  /** How often it strikes. Default 1. */
  readonly times?: number;
};

export type Credentials = { readonly username: string; readonly password: string };

export type Access = {
  readonly user: string | null;
  readonly action: "read" | "write" | "delete";
  readonly stream: string;
};

export type Features = {
  readonly version: string;
  /** false: only the plain append, as servers before 21.10. */
  readonly batchAppend: boolean;
  readonly maxAppendBytes: number;
  /** ms that an append that is not complete is waited for. */
  readonly writeTimeoutMs: number;
  /** abort: as up to 22.10. catch-up: as from 23.10 on, silently. */
  readonly slowConsumer: "abort" | "catch-up";
  /** Events that may wait for a subscriber that does not read. */
  readonly liveBuffer: number;
};

/** One server as its call handlers see it. */
export type Node = {
  readonly log: import("./log.mjs").EventLog;
  readonly faults: import("./faults.mjs").Faults;
  readonly calls: import("./calls.mjs").Calls;
  readonly features: Features;
  /** null: this one. */
  otherLeader(): Endpoint | null;
  /** Members as gossip names them. */
  members(): readonly Member[];
  admit(headers: import("@grpc/grpc-js").Metadata, action: Access["action"], stream: string): Admission;
  /** Cuts the connection from this peer. */
  cut(peer: string): void;
};

export type Member = { readonly endpoint: Endpoint; readonly leads: boolean; readonly alive: boolean };

export type Admission = "admitted" | "unauthenticated" | "denied";
