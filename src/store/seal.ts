/**
 * The chain that binds every event to all earlier ones of its stream:
 * chain(n) = hex SHA-256 of "hookledger/chain/v1\0", chain(n - 1) ("" before revision 0), and the RFC 8785 text of
 * {data, metadata without chain and payloads, revision, type}.
 */
import { hash } from "node:crypto";
import { canonicalJson, type Json } from "../payload/canonical-json.js";
import type { EventDraft } from "./port.js";

const DOMAIN = "hookledger/chain/v1\0";
const MAX_DEPTH = 100;

/** A JSON object, whole. */
export type JsonObject = { readonly [key: string]: Json };

export type Sealed = {
  /** Lower-case hex SHA-256. */
  readonly chain: string;
  /** The metadata text as it is stored: the draft's, then `chain`, then `payloads` if there are any. */
  readonly metadata: string;
};

/** Seals a draft, whose texts are canonical by contract, so that nothing is parsed or printed again. */
export function seal(previousChain: string, revision: number, draft: EventDraft): Sealed {
  const chain = linkOf(previousChain, revision, draft.type, draft.data, draft.metadata);
  const open = `${draft.metadata.slice(0, -1)},"chain":"${chain}"`;
  return { chain, metadata: draft.payloads === undefined ? `${open}}` : `${open},"payloads":${draft.payloads}}` };
}

/**
 * The chain that a recorded event must carry; `metadata` without `chain` and `payloads`.
 * Throws a TypeError on what has no RFC 8785 text (a lone surrogate) and a RangeError on nesting beyond 100 levels.
 */
export function chainOf(
  previousChain: string,
  revision: number,
  type: string,
  data: Json,
  metadata: JsonObject,
): string {
  requireShallow(data);
  requireShallow(metadata);
  return linkOf(previousChain, revision, type, canonicalJson(data), canonicalJson(metadata));
}

/** As `chainOf`, of texts that are known to be in RFC 8785 form. */
export function linkOf(previousChain: string, revision: number, type: string, data: string, metadata: string): string {
  const text = `{"data":${data},"metadata":${metadata},"revision":${revision},"type":${JSON.stringify(type)}}`;
  return hash("sha256", `${DOMAIN}${previousChain}${text}`, "hex");
}

export type SplitMetadata = {
  /** What the chain covers. */
  readonly covered: JsonObject;
  /** As found; of any shape in a ledger that was tampered with. */
  readonly chain: Json | undefined;
  readonly payloads: Json | undefined;
};

/** Takes a stored metadata text apart; null if it is not the text of a JSON object. */
export function splitMetadata(text: string): SplitMetadata | null {
  const metadata = parseObject(text);
  if (metadata === null) return null;
  const { chain, payloads, ...covered } = metadata;
  return { covered, chain, payloads };
}

function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Level by level, so that no nesting overflows the stack. */
function requireShallow(value: Json): void {
  let level: readonly object[] = isContainer(value) ? [value] : [];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new RangeError(`JSON nested deeper than ${MAX_DEPTH} levels`);
    const below: object[] = [];
    for (const parent of level) {
      for (const member of Object.values(parent)) if (isContainer(member)) below.push(member);
    }
    level = below;
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
