/** What a subscriber's answer changed, from the versions of payloads that it saw and brought. */
import type { Digest, DispatchEvent, Ref } from "../core/events.js";
import type { Json } from "../payload/canonical-json.js";
import { type Difference, differenceOf } from "./payload-diff.js";
import { type PayloadRole, refsOf } from "./payload-refs.js";
import { JsonReader } from "./timeline-json.js";
import type { PayloadContent } from "./timeline-sources.js";

export type PayloadVersion = {
  readonly number: number;
  /** As what it came up first. */
  readonly role: PayloadRole;
  readonly ref: Ref;
  /** Index of the subscriber that first made it; null: the input. */
  readonly by: number | null;
  readonly content: PayloadContent;
};

/** `from` and `to`: numbers of payload versions; equal when nothing changed. */
export type LinkChange = {
  readonly from: number;
  readonly to: number;
  /**
   * Of the payload that it saw; for a claim, all of its result; for a rewrite, the fields that it defined, against the original
   * content. Null when one of the versions cannot be shown.
   */
  readonly difference: Difference | null;
  /** Numbers of all versions that were compared. */
  readonly compared: readonly number[];
};

/** A field that a handler of a rewrite defined. */
export type DefinedField = { readonly field: PayloadRole; readonly version: number };

type Versions = ReadonlyMap<Digest, PayloadVersion>;
type Brought = { readonly role: PayloadRole; readonly version: PayloadVersion };

/** Null where the event brings nothing. */
export function changeBy(event: DispatchEvent, saw: Digest, versions: Versions): LinkChange | null {
  const before = versions.get(saw);
  const brought = broughtBy(event, versions);
  const [first] = brought;
  if (before === undefined || first === undefined) return null;
  const compared = [before, ...brought.map(({ version }) => version)];
  return {
    from: before.number,
    to: first.version.number,
    difference: difference(before, brought),
    compared: [...new Set(compared.map(({ number }) => number))],
  };
}

export function definedFields(event: DispatchEvent, versions: Versions): readonly DefinedField[] {
  return broughtBy(event, versions)
    .filter(({ role }) => isField(role))
    .map(({ role, version }) => ({ field: role, version: version.number }));
}

function broughtBy(event: DispatchEvent, versions: Versions): readonly Brought[] {
  return refsOf(event).flatMap(({ role, ref }) => {
    const version = versions.get(ref.digest);
    return version === undefined ? [] : [{ role, version }];
  });
}

function difference(before: PayloadVersion, brought: readonly Brought[]): Difference | null {
  const saw = jsonIn(before);
  const found = brought.flatMap(({ role, version }) => {
    const json = jsonIn(version);
    return json === undefined ? [] : [{ role, json }];
  });
  const [first] = found;
  if (saw === undefined || first === undefined || found.length < brought.length) return null;
  if (first.role === "result") return differenceOf({}, first.json);
  if (!isField(first.role)) return differenceOf(saw, first.json);
  const content = new JsonReader(saw).member("event").member("content").value;
  const original = content === undefined ? {} : { content };
  return differenceOf(original, { ...original, ...Object.fromEntries(found.map(({ role, json }) => [role, json])) });
}

function isField(role: PayloadRole): boolean {
  return role === "content" || role === "cancelReason" || role === "metadata";
}

function jsonIn({ content }: PayloadVersion): Json | undefined {
  return content.kind === "found" ? content.json : undefined;
}
