/** The policy rules in an archived configuration: the text that `started.configDigest` names. */
import type { PolicyAction, PolicyMatch, PolicyRisk } from "../core/policy.js";
import type { Place } from "../errors.js";
import type { Json } from "../payload/canonical-json.js";
import { JsonReader } from "./timeline-json.js";
import type { ArchivedRule } from "./timeline-plan.js";

const ACTIONS: readonly PolicyAction[] = ["allow", "ask", "deny"];
const KINDS = ["resource", "data_source"] as const;
const RISKS: readonly PolicyRisk[] = ["read_only", "low", "moderate", "high", "critical"];

/** In the order of the configuration; what is no rule of this version is passed over. */
export function archivedRules(config: Json): readonly ArchivedRule[] {
  return new JsonReader(config).items("blocks").flatMap((block) => ruleOf(block) ?? []);
}

function ruleOf(block: JsonReader): ArchivedRule | null {
  if (block.text("type") !== "policy") return null;
  const name = block.items("labels")[0]?.value;
  const attributes = block.member("attributes");
  const action = oneOf(ACTIONS, literal(attributes, "action"));
  if (typeof name !== "string" || action === undefined) return null;
  const match = matchOf(attributes.member("match"));
  return { name, match, action, reason: literal(attributes, "reason"), place: placeOf(block.text("at")) };
}

function matchOf(match: JsonReader): PolicyMatch {
  const kind = oneOf(KINDS, literal(match, "kind"));
  const provider = literal(match, "provider");
  const toolName = literal(match, "tool_name");
  const risk = oneOf(RISKS, literal(match, "risk"));
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(provider === null ? {} : { provider }),
    ...(toolName === null ? {} : { tool_name: toolName }),
    ...(risk === undefined ? {} : { risk }),
  };
}

/** Texts are archived as templates: `$${` stands for a literal `${`. */
function literal(members: JsonReader, key: string): string | null {
  return members.text(key)?.replace(/([$%])\1(?=\{)/g, "$1") ?? null;
}

const PLACE = /^(.*):(\d{1,9}):(\d{1,9})$/s;

function placeOf(at: string | null): Place | null {
  const [, file, line, col] = PLACE.exec(at ?? "") ?? [];
  return file === undefined ? null : { file, line: Number(line), col: Number(col) };
}

function oneOf<T extends string>(words: readonly T[], word: string | null): T | undefined {
  return words.find((known) => known === word);
}
