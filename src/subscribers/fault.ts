/** A subscriber's faults as answers. What a subscriber threw is untrusted: it is read once, with care, and bounded. */

import type { Category, HookMode } from "../core/events.js";
import type { Answer } from "../payload/answer.js";
import { rawText } from "../payload/text.js";

/** UTF-16 units. A longer name is left out: of one that is cut, nobody could tell that it was a secret. */
const MAX_NAME = 100;

const FAILURE: Readonly<Record<HookMode, Category>> = {
  observe: "UNKNOWN",
  transform: "TRANSFORM_FAILED",
  veto: "VETO_FAILED",
};

export type Fault = Extract<Answer, { class: "failed" | "invalid" }>;

/** The subscriber ran and could not do its work. */
export function failed(mode: HookMode, message: string): Fault {
  return { class: "failed", error: { category: FAILURE[mode], message: rawText(message) } };
}

/** There is nobody left to answer: process, connection or protocol is gone. */
export function crashed(message: string): Fault {
  return { class: "failed", error: { category: "PROCESS_CRASHED", message: rawText(message) } };
}

/** The deadline was met by somebody else's clock before ours said so. */
export function timedOut(message: string): Fault {
  return { class: "failed", error: { category: "TIMEOUT", message: rawText(message) } };
}

/** There is an answer, and it is none. */
export function invalid(message: string): Fault {
  return { class: "invalid", error: { category: "INVALID_RESPONSE", message: rawText(message) } };
}

/** What a thrown value says, in one line: its own message, never its stack. Never throws. */
export function thrownText(thrown: unknown): string {
  try {
    if (typeof thrown === "object" && thrown !== null) return errorText(thrown);
    return typeof thrown === "function" ? "a function was thrown" : `${kindOf(thrown)} was thrown: ${String(thrown)}`;
  } catch {
    return "a value was thrown that cannot be read";
  }
}

function errorText(thrown: object): string {
  const message: unknown = "message" in thrown ? thrown.message : undefined;
  const name: unknown = "name" in thrown ? thrown.name : undefined;
  if (typeof message !== "string") return "an object without a message was thrown";
  const named = typeof name === "string" && name !== "" && name !== "Error" && name.length <= MAX_NAME;
  const prefix = named ? `${name}: ` : "";
  return message === "" ? `${prefix}an error without a message was thrown` : prefix + message;
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  return `a ${typeof value}`;
}
