/** What a check is, and what it is given. */

import type fc from "fast-check";
import type { HookMode } from "../core/events.js";
import type { Payload } from "../payload/payload.js";
import type { CallTimes, Heard, Stand } from "./ask.js";
import type { Subject } from "./subject.js";

type Judge<T> = {
  readonly arbitrary: (stand: Stand) => fc.Arbitrary<T>;
  /** What is wrong with how the subscriber takes it; null: nothing. */
  readonly judge: (bench: Bench, specimen: T) => Promise<string | null>;
};

export type Check = {
  readonly name: string;
  /** One sentence: what goes wrong where this does not hold. */
  readonly why: string;
  /** What the kernel holds subscribers to. */
  readonly rule: string;
  readonly modes: readonly HookMode[];
  /** Part of the asked-for runs, for checks of which one run is many calls. */
  readonly share: number;
} & (
  | ({ readonly takes: "payload" } & Judge<Payload>)
  /** Bytes that stand in place of a DispatchHookRequest. */
  | ({ readonly takes: "request" } & Judge<Uint8Array>)
);

/** One subscriber at one point in one mode. */
export interface Bench extends Stand {
  readonly subject: Subject;
  /** Everything generated depends on it and on nothing else. */
  readonly seed: number;
  /** ms that a call has */
  readonly timeoutMs: number;
  /** An ordinary payload of the point; once the bench is settled, one that is answered. */
  readonly usual: Payload;
  /** Asks once, under the usual deadline unless told otherwise. Never rejects. */
  ask(payload: Payload, times?: Partial<CallTimes>): Promise<Heard>;
  /** Looks for an ordinary payload that is answered. `fault`: there is none; `silence`: nor any answer at all. */
  settle(): Promise<"answered" | "fault" | "silence">;
  /** Asks once and says what is wrong with the answer; null: nothing. */
  fault(payload: Payload): Promise<string | null>;
}

export const EVERY_MODE: readonly HookMode[] = ["observe", "transform", "veto"];

/** ms that a subscriber has to end a call that is over */
export const GRACE_MS = 1_000;
