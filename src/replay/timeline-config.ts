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
  return new JsonReader(config).items("policy").flatMap((rule) => ruleOf(rule) ?? []);
}

function ruleOf(rule: JsonReader): ArchivedRule | null {
  const name = rule.text("name");
  const action = oneOf(ACTIONS, rule.text("action"));
  if (name === null || action === undefined) return null;
  return {
    name,
    match: matchOf(rule.member("match")),
    action,
    reason: rule.text("reason"),
    place: placeOf(rule.member("place")),
  };
}

function matchOf(match: JsonReader): PolicyMatch {
  const kind = oneOf(KINDS, match.text("kind"));
  const provider = match.text("provider");
  const toolName = match.text("tool_name");
  const risk = oneOf(RISKS, match.text("risk"));
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(provider === null ? {} : { provider }),
    ...(toolName === null ? {} : { tool_name: toolName }),
    ...(risk === undefined ? {} : { risk }),
  };
}

function placeOf(place: JsonReader): Place | null {
  const file = place.text("file");
  const line = place.whole("line");
  const col = place.whole("col");
  return file === null || line === null || col === null ? null : { file, line, col };
}

function oneOf<T extends string>(words: readonly T[], word: string | null): T | undefined {
  return words.find((known) => known === word);
}
