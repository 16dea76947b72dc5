/** What the thread of a checked module and the thread that checks it say to each other. */

import type { Provider } from "../config/types.js";
import type { ErrorCode } from "../errors.js";
import type { Answer } from "../payload/answer.js";
import { type Payload, payloadOfCanonical } from "../payload/payload.js";
import type { HookConfig } from "../subscribers/handlers.js";
import type { LogSink } from "../subscribers/log.js";
import type { Stand } from "./ask.js";

/** `config`: the resolved body. */
export type ThreadData = { readonly provider: Provider; readonly config: HookConfig };

export type ToThread =
  | ({
      readonly kind: "call";
      readonly id: number;
      readonly payload: Uint8Array;
      readonly session: string | undefined;
      readonly turn: string | undefined;
      /** ms */
      readonly timeoutMs: number;
    } & Stand)
  | { readonly kind: "abort"; readonly id: number }
  | { readonly kind: "ping" };

export type FromThread =
  | { readonly kind: "loaded"; readonly handlers: readonly Stand[] }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string; readonly hint: string | undefined }
  | { readonly kind: "answer"; readonly id: number; readonly answer: SentAnswer }
  | { readonly kind: "pong" }
  | { readonly kind: "log"; readonly line: Parameters<LogSink>[0] };

type Transformed = Extract<Answer, { class: "transformed" }>;
type SentAnswer = Exclude<Answer, Transformed> | (Omit<Transformed, "payload"> & { readonly bytes: Uint8Array | null });

/** An unchanged payload is not sent back. */
export function sent(answer: Answer, asked: Payload): SentAnswer {
  if (answer.class !== "transformed") return answer;
  const { payload, ...rest } = answer;
  return { ...rest, bytes: payload === asked ? null : payload.bytes };
}

export function received(answer: SentAnswer, asked: Payload): Answer {
  if (answer.class !== "transformed") return answer;
  const { bytes, ...rest } = answer;
  return { ...rest, payload: bytes === null ? asked : payloadOfCanonical(bytes) };
}
