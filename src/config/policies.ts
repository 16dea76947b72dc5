import type { PolicyMatch } from "../core/policy.js";
import type { Place } from "../errors.js";
import { MAX_REASON_BYTES } from "../payload/text.js";
import { at, type Diagnostics, quoted } from "./diagnostics.js";
import { Fields } from "./fields.js";
import { oneOf, shortText, text } from "./readers.js";
import type { PlacedRule } from "./types.js";
import type { Block, Label } from "./value.js";

/** The rules, in textual order. `blocks` come with their names. */
export function readPolicies(blocks: readonly (readonly [Label, Block])[], report: Diagnostics): readonly PlacedRule[] {
  const rules: PlacedRule[] = [];
  const places = new Map<string, PlacedRule>();
  for (const [label, block] of blocks) {
    const rule = readRule(label.text, block, report);
    if (rule === undefined) continue;
    rules.push(rule);
    const key = matchKey(rule.match);
    const first = places.get(key);
    if (first === undefined) {
      places.set(key, rule);
    } else {
      report.error(
        block.place,
        `policy ${quoted(rule.name)} matches exactly what ${quoted(first.name)} at ${at(first.place)} matches`,
        { hint: "remove one of them, or make one more specific" },
      );
    }
  }
  return rules;
}

function readRule(name: string, block: Block, report: Diagnostics): PlacedRule | undefined {
  const fields = new Fields("policy", block.place, block.body, report);
  const match = readMatch(fields, block.place, report);
  const action = fields.required("action", oneOf("allow", "ask", "deny"));
  const reason = fields.optional("reason", shortText(MAX_REASON_BYTES));
  fields.close();
  if (action === undefined) return undefined;
  return { name, match, action, ...(reason !== undefined && { reason }), place: block.place };
}

function readMatch(fields: Fields, place: Place, report: Diagnostics): PolicyMatch {
  const match = fields.object("match");
  const isEmpty = match === undefined ? !fields.has("match") : match.isEmpty();
  if (isEmpty) {
    report.warning(match?.place ?? place, "an empty match applies to every item", {
      hint: "name at least one of kind, provider, tool_name, risk",
    });
  }
  if (match === undefined) return {};
  const kind = match.optional("kind", oneOf("resource", "data_source"));
  const provider = match.optional("provider", text);
  const toolName = match.optional("tool_name", text);
  const risk = match.optional("risk", oneOf("read_only", "low", "moderate", "high", "critical"));
  match.close();
  return {
    ...(kind !== undefined && { kind }),
    ...(provider !== undefined && { provider }),
    ...(toolName !== undefined && { tool_name: toolName }),
    ...(risk !== undefined && { risk }),
  };
}

/** Equal for two rules between which specificity cannot choose: the same fields are set, to the same values. */
function matchKey({ tool_name, provider, risk, kind }: PolicyMatch): string {
  return JSON.stringify([tool_name ?? null, provider ?? null, risk ?? null, kind ?? null]);
}
