/** What a handler returned, read once, as its hook's composition takes it. What throws while it is read counts as thrown by the handler. */

import { type Fault, failed } from "../subscribers/fault.js";
import { clone } from "./clone.js";
import type { Metadata, ReplyPayload } from "./facts.js";

/** Fields that a rewrite defined; what it did not define is absent. */
export type Defined = { readonly content?: string; readonly cancelReason?: string; readonly metadata?: Metadata };

/** Of all compositions. `R`: what a claim returns. */
export type HandlerAnswer =
  | { readonly class: "ack" }
  | { readonly class: "declined"; readonly warnings?: readonly string[] }
  | { readonly class: "claimed"; readonly result: object }
  | {
      readonly class: "defined";
      readonly set: Defined;
      readonly cancel: boolean;
      readonly warnings?: readonly string[];
    }
  | { readonly class: "replaced"; readonly payload: ReplyPayload }
  | { readonly class: "cancelled"; readonly reason?: string; readonly payload?: ReplyPayload };

const DECLINED: HandlerAnswer = { class: "declined" };

export function claimAnswer(returned: unknown): HandlerAnswer {
  if (typeof returned !== "object" || returned === null) return DECLINED;
  return Reflect.get(returned, "handled") ? { class: "claimed", result: returned } : DECLINED;
}

/** Null and undefined define nothing; the empty text does. What is of another type is ignored, with a warning. */
export function rewriteAnswer(returned: unknown): HandlerAnswer {
  if (typeof returned !== "object" || returned === null) return DECLINED;
  const warnings: string[] = [];
  const text = (field: string): string | undefined => {
    const value: unknown = Reflect.get(returned, field);
    if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
    warnings.push(`${field} is no text, and counts for nothing`);
    return undefined;
  };
  const content = text("content");
  const cancelReason = text("cancelReason");
  const given: unknown = Reflect.get(returned, "metadata");
  const metadata = isRecord(given) ? clone({ ...given }) : undefined;
  if (metadata === undefined && given !== undefined && given !== null) {
    warnings.push("metadata is no object, and counts for nothing");
  }
  const set: Defined = {
    ...(content === undefined ? {} : { content }),
    ...(cancelReason === undefined ? {} : { cancelReason }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const told = warnings.length === 0 ? {} : { warnings };
  const cancel = Reflect.get(returned, "cancel") === true;
  return cancel || Object.keys(set).length > 0 ? { class: "defined", set, cancel, ...told } : { ...DECLINED, ...told };
}

/** A payload replaces the whole payload; one that is null, no object or cannot be cloned is a failure. */
export function waterfallAnswer(returned: unknown): HandlerAnswer | Fault {
  if (!isRecord(returned)) return DECLINED;
  const cancel = Reflect.get(returned, "cancel") === true;
  const given: unknown = Reflect.get(returned, "payload");
  const payload = given === undefined ? undefined : ownPayload(given);
  if (cancel) {
    const reason: unknown = Reflect.get(returned, "reason");
    return {
      class: "cancelled",
      ...(typeof reason === "string" ? { reason } : {}),
      ...(payload === undefined || payload === null ? {} : { payload }),
    };
  }
  if (payload === null)
    return failed("observe", "the payload that it returned is null, no object, or cannot be cloned");
  return payload === undefined ? DECLINED : { class: "replaced", payload };
}

/** Ours from here on. Null where it is none. */
function ownPayload(given: unknown): ReplyPayload | null {
  if (!isRecord(given)) return null;
  try {
    const { trustedLocalMedia: _, ...payload } = structuredClone(given);
    return clone(payload);
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
