/** Payloads of message hooks: canonical JSON, of the shape that belongs to what it stands for. */
import type { DispatchEvent, Ref } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { Json } from "../payload/canonical-json.js";
import { amiss, type EventPlace, type PayloadFinding, type PayloadRules } from "./payload-check-rules.js";
import { differenceOf } from "./payload-diff.js";
import { isCanonicalText, jsonOfText } from "./payload-json.js";
import { type NamedRef, type PayloadRole, refsOf } from "./payload-refs.js";

export const handlerPayloads: PayloadRules = {
  encoding: "json",

  bytesFinding(bytes) {
    const json = jsonIn(bytes);
    if (json === null) return amiss("JSON", "no JSON");
    return isCanonicalText(bytes, json.value) ? null : amiss("canonical JSON (RFC 8785)", "another spelling of it");
  },

  async eventFinding(event, place) {
    for (const named of refsOf(event)) {
      const finding = await shapeFinding(named, place);
      if (finding !== null) return finding;
    }
    return replacementFinding(event, place);
  },
};

type Members = { readonly [key: string]: Json | undefined };

/** Boxed, because null is JSON too. */
function jsonIn(bytes: Uint8Array | null): { readonly value: Json } | null {
  if (bytes === null) return null;
  try {
    return { value: jsonOfText(bytes) };
  } catch (error) {
    if (error instanceof HookledgerError) return null;
    throw error;
  }
}

async function shapeFinding({ role, ref }: NamedRef, { started, bytesOf }: EventPlace): Promise<PayloadFinding | null> {
  const json = jsonIn(await bytesOf(ref.digest));
  if (json === null) return amiss(`the ${role}`, "nothing that can be read");
  const { value } = json;
  if (isUnrecordable(value)) return null;
  const expected = wanted(role, value, started.flags.includes("redacted"));
  return expected === null ? null : amiss(`${expected} for the ${role}`, "JSON of another shape");
}

/** What this should have been, or null. Redaction may have changed the names of members. */
function wanted(role: PayloadRole, value: Json, redacted: boolean): string | null {
  switch (role) {
    case "input":
    case "payload":
      return (redacted && isMembers(value)) || isDocument(value) ? null : "an event with its context";
    case "content":
    case "cancelReason":
      return typeof value === "string" ? null : "a text";
    case "metadata":
      return isMembers(value) ? null : "an object";
    case "result":
      return typeof value === "object" && value !== null ? null : "an object";
  }
}

/** What has no JSON form is recorded by its kind. */
function isUnrecordable(value: Json): boolean {
  return isMembers(value) && Object.keys(value).length === 1 && typeof own(value, "$unrecordable") === "string";
}

function isDocument(value: Json): boolean {
  return isMembers(value) && Object.keys(value).length === 2 && isMembers(own(value, "context")) && hasEvent(value);
}

/**
 * A handler of a waterfall saw what the run had come to, and gave `event.payload` alone another value. Redacted copies are no
 * exception, unless redaction changed the names by which to look.
 */
async function replacementFinding(
  event: DispatchEvent,
  { before, bytesOf }: EventPlace,
): Promise<PayloadFinding | null> {
  const ref = replacementIn(event);
  if (ref === null || before.kind === "new" || ref.digest === before.payload) return null;
  const saw = jsonIn(await bytesOf(before.payload));
  const left = jsonIn(await bytesOf(ref.digest));
  if (saw === null || left === null) return amiss("the documents before and behind a handler", "not both of them");
  if (!hasEvent(saw.value) || !hasEvent(left.value)) return null;
  const [other] = differenceOf(withoutPayload(saw.value), withoutPayload(left.value), 1).changes;
  return other === undefined ? null : amiss("changes of event.payload only", `another ${other.path}`);
}

function replacementIn(event: DispatchEvent): Ref | null {
  if (event.type !== "outcome") return null;
  return event.class === "rewritten" || event.class === "cancelled" ? (event.payload ?? null) : null;
}

function withoutPayload(document: Members & { readonly event: Members }): Json {
  const { payload: _, ...event } = document.event;
  return { ...document, event };
}

function hasEvent(value: Json): value is Members & { readonly event: Members } {
  return isMembers(value) && isMembers(own(value, "event"));
}

function own(members: Members, key: string): Json | undefined {
  return Object.hasOwn(members, key) ? members[key] : undefined;
}

function isMembers(value: Json | undefined): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
