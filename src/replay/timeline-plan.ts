/** What policy said of each plan item, and the rule that made it say so, from the archived configuration. */
import type { ItemDecision, PolicyItem } from "../core/events.js";
import type { PolicyAction, PolicyMatch } from "../core/policy.js";
import type { Place } from "../errors.js";
import type { Json } from "../payload/canonical-json.js";
import { JsonReader } from "./timeline-json.js";

export type ArchivedRule = {
  readonly name: string;
  readonly match: PolicyMatch;
  readonly action: PolicyAction;
  readonly reason: string | null;
  readonly place: Place | null;
};

export type ArchivedConfig =
  | { readonly kind: "found"; readonly rules: readonly ArchivedRule[] }
  | { readonly kind: "missing" }
  /** What is kept under the digest has another one. */
  | { readonly kind: "altered" }
  | { readonly kind: "unreadable" };

export type PlanLine = {
  readonly itemId: string;
  readonly decision: ItemDecision;
  readonly decidedBy: string;
  readonly reason: string | null;
  readonly item: PlanItemText | null;
  readonly origin: Origin;
};

/** Of the plan as it came in; a member that is not there is null. */
type PlanItemText = {
  readonly provider: string | null;
  readonly toolName: string | null;
  /** `resource` */
  readonly kind: string | null;
  /** `read_only` */
  readonly risk: string | null;
  readonly description: string | null;
};

/** Why policy decided so. `earlier`: the item came in denied, and stayed so. */
export type Origin =
  | { readonly kind: "rule"; readonly rule: ArchivedRule }
  | { readonly kind: "default" }
  | { readonly kind: "earlier" }
  /** Named in the record, and not to be found in the configuration that the record names. */
  | { readonly kind: "unknown"; readonly config: ArchivedConfig["kind"] };

const RULE = "policy:";

export function planLines(
  items: readonly PolicyItem[],
  input: Json | null,
  config: ArchivedConfig,
): readonly PlanLine[] {
  const incoming = new Map(incomingItems(input));
  const rules = new Map(config.kind === "found" ? config.rules.map((rule) => [rule.name, rule]) : []);
  return items.map(({ itemId, decision, decidedBy, reason }) => {
    const item = incoming.get(itemId);
    const came = item?.text("decision") === "PLAN_DECISION_DENY" && decision === "deny";
    return {
      itemId,
      decision,
      decidedBy,
      reason: reason ?? null,
      item: item === undefined ? null : itemText(item),
      origin: came ? { kind: "earlier" } : originOf(decidedBy, rules, config),
    };
  });
}

function originOf(decidedBy: string, rules: ReadonlyMap<string, ArchivedRule>, config: ArchivedConfig): Origin {
  if (!decidedBy.startsWith(RULE)) return { kind: "earlier" };
  const name = decidedBy.slice(RULE.length);
  const rule = rules.get(name);
  if (rule !== undefined) return { kind: "rule", rule };
  return name === "default" ? { kind: "default" } : { kind: "unknown", config: config.kind };
}

function* incomingItems(input: Json | null): Generator<[string, JsonReader]> {
  for (const item of new JsonReader(input).member("planReady").member("plan").items("items")) {
    const id = item.text("id");
    if (id !== null) yield [id, item];
  }
}

function itemText(item: JsonReader): PlanItemText {
  return {
    provider: item.text("provider"),
    toolName: item.text("operationName"),
    kind: shortName(item.text("kind"), "TOOL_KIND_"),
    risk: shortName(item.text("risk"), "RISK_CLASS_"),
    description: item.text("description"),
  };
}

function shortName(name: string | null, prefix: string): string | null {
  return name?.startsWith(prefix) ? name.slice(prefix.length).toLowerCase() : name;
}
