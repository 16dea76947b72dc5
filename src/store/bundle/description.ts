/** What a bundle says of itself. Nothing of it is proven but the digest, which whoever reads the bundle computes again. */
import { canonicalJson } from "../../payload/canonical-json.js";
import { type Fields, readObject, readText, Undecodable } from "../record/fields.js";

/** What was asked for; no member: everything. */
export type BundleSelection = {
  /** null: dispatches without one. */
  readonly session?: string | null;
  /** Begun then or later, ISO 8601. */
  readonly since?: string;
  /** Begun before then, ISO 8601. */
  readonly until?: string;
  /** Ids in ascending order. */
  readonly dispatches?: readonly string[];
};

export type BundleDescription = {
  readonly engineVersion: string;
  /** URL of the ledger that was read last, without credentials. */
  readonly source: string;
  readonly selection: BundleSelection;
  /** ISO 8601, of the first export into it. */
  readonly createdAt: string;
  /** `growing`: it was finished before, and more is being added. */
  readonly state: "new" | "growing" | "finished";
  /** Of the whole bundle; null unless it is finished. */
  readonly digest: string | null;
  readonly streams: number;
  readonly events: number;
  readonly payloads: number;
  /** Payloads that the events name and the ledger did not have, or not as their digest says. */
  readonly missing: number;
  readonly damaged: number;
};

export function printDescription({ selection, ...description }: BundleDescription): string {
  return canonicalJson({ ...description, selection: { ...selection } });
}

export function printSelection(selection: BundleSelection): string {
  return canonicalJson({ ...selection });
}

/** For people. */
export function selectionText(selection: BundleSelection): string {
  const printed = printSelection(selection);
  return printed === "{}" ? "the whole ledger" : printed;
}

/** null for a text that is no description of this version. */
export function parseDescription(text: string): BundleDescription | null {
  try {
    return readObject(JSON.parse(text), "description", description);
  } catch (error) {
    if (error instanceof Undecodable || error instanceof SyntaxError) return null;
    throw error;
  }
}

function description(fields: Fields): BundleDescription {
  return {
    engineVersion: fields.text("engineVersion"),
    source: fields.text("source"),
    selection: fields.object("selection", selection),
    createdAt: fields.text("createdAt"),
    state: fields.oneOf("state", ["new", "growing", "finished"]),
    digest: fields.nullable("digest", (key) => fields.text(key)),
    streams: fields.whole("streams"),
    events: fields.whole("events"),
    payloads: fields.whole("payloads"),
    missing: fields.whole("missing"),
    damaged: fields.whole("damaged"),
  };
}

function selection(fields: Fields): BundleSelection {
  return {
    ...fields.optional("session", (name) => fields.nullable(name, (key) => fields.text(key))),
    ...fields.optional("since", (key) => fields.text(key)),
    ...fields.optional("until", (key) => fields.text(key)),
    ...fields.optional("dispatches", (key) => fields.list(key, readText)),
  };
}
