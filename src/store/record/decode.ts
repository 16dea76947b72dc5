/** Recorded text back to events. Closed: an unknown type, member, class, cause or version is refused, never ignored. */
import type {
  Aborted,
  Category,
  DispatchEvent,
  HookError,
  Outcome,
  OutcomeClass,
  PolicyItem,
  Producer,
  RewriteSet,
  Started,
  Subscriber,
} from "../../core/events.js";
import { REDUCER_VERSION } from "../../core/legality.js";
import { canonicalJson } from "../../payload/canonical-json.js";
import { isDigest } from "../../payload/digest.js";
import { encodeData } from "./encode.js";
import { type Fields, readObject, readText, readWhole, Undecodable } from "./fields.js";

export type DecodeFailure = {
  readonly kind: "undecodable" | "unknown_type" | "unknown_version";
  readonly found: string;
};

/** `data` as stored. Never throws. */
export function decodeEvent(type: string, data: string): { readonly event: DispatchEvent } | DecodeFailure {
  const bare = type === "subscriber-invoked" || type === "outcome" ? bareEvent(type, data) : null;
  if (bare !== null) return { event: bare };
  const read = READERS.get(type);
  if (read === undefined) return { kind: "unknown_type", found: type.slice(0, 64) };
  try {
    return type === "started" ? decodeStarted(data) : { event: readObject(JSON.parse(data), "data", read) };
  } catch (error) {
    if (error instanceof Undecodable) return { kind: "undecodable", found: `${type}: ${error.message}` };
    if (error instanceof SyntaxError) return { kind: "undecodable", found: `${type}: data is no JSON` };
    throw error;
  }
}

/**
 * Nine of ten events: a call, or an answer of one word. Read from where their writer puts things, and believed only if the writer
 * prints the same text again; anything else is left to the strict reader.
 */
function bareEvent(type: "subscriber-invoked" | "outcome", data: string): DispatchEvent | null {
  const event = type === "outcome" ? bareOutcome(data) : bareInvocation(data);
  return event !== null && encodeData(event) === data ? event : null;
}

function bareInvocation(data: string): DispatchEvent | null {
  const mark = data.indexOf(',"saw":"');
  const index = Number(data.slice('{"index":'.length, mark));
  const saw = data.slice(mark + ',"saw":"'.length, -2);
  return mark > 0 && Number.isSafeInteger(index) && index >= 0 && isDigest(saw)
    ? { type: "subscriber-invoked", index, saw }
    : null;
}

function bareOutcome(data: string): DispatchEvent | null {
  const answer = data.startsWith('{"class":"ack",') ? "ack" : data.startsWith('{"class":"allow",') ? "allow" : null;
  if (answer === null) return null;
  const index = Number(data.slice(data.lastIndexOf(":") + 1, -1));
  return Number.isSafeInteger(index) && index >= 0 ? { type: "outcome", index, class: answer } : null;
}

const CHAIN_BEGIN = ',"subscribers":';
const CHAIN_END = ',"vetoBearing":';
const MAX_KNOWN_CHAINS = 64;
const knownChains = new Map<string, readonly Subscriber[]>();

/**
 * The frozen chain of a point is the same text in all its dispatches, and most of `started`: it is decoded once. The marks cannot
 * stand inside a string unescaped, and whatever else is left of the text must be an object without a chain.
 */
function decodeStarted(data: string): { readonly event: Started } | DecodeFailure {
  const begin = data.indexOf(CHAIN_BEGIN);
  const end = data.lastIndexOf(CHAIN_END);
  const chainText = begin < 0 || end < begin ? "" : data.slice(begin + CHAIN_BEGIN.length, end);
  const known = knownChains.get(chainText);
  const value: unknown = JSON.parse(known === undefined ? data : data.slice(0, begin) + data.slice(end));
  const version = reducerVersionOf(value);
  if (version !== REDUCER_VERSION) return { kind: "unknown_version", found: `reducer version ${String(version)}` };
  const event = readObject(value, "data", (fields) => started(fields, known));
  if (known === undefined && canonicalJson(event.subscribers) === chainText) {
    if (knownChains.size >= MAX_KNOWN_CHAINS) knownChains.clear();
    knownChains.set(chainText, event.subscribers);
  }
  return { event };
}

/** The version is read first: what a newer one means by its other members is not for us to judge. */
function reducerVersionOf(value: unknown): number | undefined {
  if (typeof value !== "object" || value === null || !("reducerVersion" in value)) return undefined;
  return typeof value.reducerVersion === "number" ? value.reducerVersion : undefined;
}

const READERS: ReadonlyMap<string, (data: Fields) => DispatchEvent> = new Map<string, (data: Fields) => DispatchEvent>([
  ["started", started],
  [
    "subscriber-invoked",
    (data) => ({ type: "subscriber-invoked", index: data.whole("index"), saw: data.digest("saw") }),
  ],
  ["outcome", outcome],
  ["timeout", (data) => ({ type: "timeout", index: data.whole("index"), budgetMs: data.whole("budgetMs") })],
  ["aborted", aborted],
  [
    "decided",
    (data) => ({
      type: "decided",
      decision: data.oneOf("decision", ["allow", "deny"]),
      decidedBy: data.text("decidedBy"),
      payload: data.digest("payload"),
    }),
  ],
]);

function started(data: Fields, known?: readonly Subscriber[]): Started {
  return {
    type: "started",
    dispatchId: data.text("dispatchId"),
    point: data.text("point"),
    composition: data.text("composition"),
    reducerVersion: data.whole("reducerVersion"),
    flags: data.list("flags", readText),
    vetoBearing: data.flag("vetoBearing"),
    observe: data.oneOf("observe", ["concurrent", "sequential", "detached"]),
    budgetMs: data.nullable("budgetMs", (key) => data.whole(key)),
    subscribers: known ?? data.list("subscribers", (item, path) => readObject(item, path, subscriber)),
    configDigest: data.digest("configDigest"),
    descriptorDigest: data.digest("descriptorDigest"),
    input: data.ref("input"),
  };
}

function subscriber(data: Fields): Subscriber {
  return {
    index: data.whole("index"),
    id: data.text("id"),
    provider: data.text("provider"),
    mode: data.oneOf("mode", ["policy", "observe", "transform", "veto", "handler"]),
    timeoutMs: data.nullable("timeoutMs", (key) => data.whole(key)),
    ...data.optional("subscriptionId", (key) => data.text(key)),
    ...data.optional("skip", (key) => data.text(key)),
    ...data.optional("shadow", (key) => onlyTrue(data, key)),
    producer: data.object("producer", producer),
  };
}

function onlyTrue(data: Fields, key: string): true {
  if (data.flag(key)) return true;
  throw new Undecodable(`${key} is not true`);
}

function producer(data: Fields): Producer {
  return {
    name: data.text("name"),
    ...data.optional("version", (key) => data.text(key)),
    source: data.text("source"),
    ...data.optional("category", (key) => data.text(key)),
    ...data.optional("digest", (key) => data.digest(key)),
  };
}

const CLASSES: readonly OutcomeClass[] = [
  "ack",
  "transformed",
  "allow",
  "deny",
  "policy",
  "claimed",
  "declined",
  "rewritten",
  "cancelled",
  "failed",
  "invalid",
  "lost",
];

function outcome(data: Fields): Outcome {
  const base = {
    type: "outcome" as const,
    index: data.whole("index"),
    ...data.optional("warnings", (key) => data.list(key, readText)),
  };
  const answer = data.oneOf("class", CLASSES);
  switch (answer) {
    case "ack":
    case "allow":
    case "declined":
    case "lost":
      return { ...base, class: answer };
    case "transformed":
    case "claimed":
      return { ...base, class: answer, payload: data.ref("payload") };
    case "deny":
      return { ...base, class: answer, ...data.optional("reason", (key) => data.text(key)) };
    case "policy":
      return {
        ...base,
        class: answer,
        payload: data.ref("payload"),
        items: data.list("items", (item, path) => readObject(item, path, policyItem)),
      };
    case "rewritten":
      return {
        ...base,
        class: answer,
        ...data.optional("payload", (key) => data.ref(key)),
        ...data.optional("set", (key) => data.object(key, rewriteSet)),
      };
    case "cancelled":
      return {
        ...base,
        class: answer,
        ...data.optional("reason", (key) => data.text(key)),
        ...data.optional("payload", (key) => data.ref(key)),
        ...data.optional("set", (key) => data.object(key, rewriteSet)),
      };
    case "failed":
    case "invalid":
      return { ...base, class: answer, error: data.object("error", hookError) };
  }
}

function policyItem(data: Fields): PolicyItem {
  return {
    itemId: data.text("itemId"),
    decision: data.oneOf("decision", ["allow", "ask", "deny"]),
    decidedBy: data.text("decidedBy"),
    ...data.optional("reason", (key) => data.text(key)),
  };
}

function rewriteSet(data: Fields): RewriteSet {
  return {
    ...data.optional("content", (key) => data.ref(key)),
    ...data.optional("cancelReason", (key) => data.ref(key)),
    ...data.optional("metadata", (key) => data.ref(key)),
  };
}

const CATEGORIES: readonly Category[] = [
  "TRANSFORM_FAILED",
  "VETO_FAILED",
  "TIMEOUT",
  "INVALID_RESPONSE",
  "PROCESS_CRASHED",
  "UNKNOWN",
];

function hookError(data: Fields): HookError {
  return { category: data.oneOf("category", CATEGORIES), message: data.text("message") };
}

function aborted(data: Fields): Aborted {
  return {
    type: "aborted",
    cause: data.oneOf("cause", ["hook_error", "cancelled", "store_unavailable", "unconfirmed", "recovered"]),
    ...data.optional("index", (key) => data.whole(key)),
    ...data.optional("error", (key) => data.object(key, hookError)),
    ...data.optional("inFlight", (key) => data.list(key, readWhole)),
  };
}
