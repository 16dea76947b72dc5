import type { PolicyItem } from "./events.js";

export type PolicyKind = "resource" | "data_source" | "interactive";
export type PolicyRisk = "read_only" | "low" | "moderate" | "high" | "critical";
export type PolicyAction = "allow" | "ask" | "deny";

/** `match` fields are ANDed; an omitted one matches all. */
export type PolicyMatch = {
  readonly kind?: "resource" | "data_source";
  readonly provider?: string;
  readonly tool_name?: string;
  readonly risk?: PolicyRisk;
};

export type PolicyRule = {
  readonly name: string;
  readonly match: PolicyMatch;
  readonly action: PolicyAction;
  readonly reason?: string;
};

/** What policy reads of a plan item. */
export type PlanItemFacts = {
  readonly itemId: string;
  readonly provider: string;
  readonly toolName: string;
  readonly kind: PolicyKind | "unspecified";
  readonly risk?: PolicyRisk;
  /** The decision that the item came with, and who had made it. */
  readonly incoming: "pending" | "allow" | "ask" | "deny" | "unspecified";
  readonly decidedBy: string;
};

/** Which fields a rule sets, most telling first; compared from left to right. */
type Specificity = readonly [toolName: boolean, provider: boolean, risk: boolean, kind: boolean];

export function specificityOf({ tool_name, provider, risk, kind }: PolicyMatch): Specificity {
  return [tool_name !== undefined, provider !== undefined, risk !== undefined, kind !== undefined];
}

/** Positive: `a` is more specific. */
export function compareSpecificity(a: Specificity, b: Specificity): number {
  for (const [place, set] of a.entries()) {
    if (set !== b[place]) return set ? 1 : -1;
  }
  return 0;
}

/** Decides every item afresh; only an incoming DENY stands. */
export function evaluatePolicy(rules: readonly PolicyRule[], items: readonly PlanItemFacts[]): readonly PolicyItem[] {
  return items.map((item) => (item.incoming === "deny" ? stands(item) : decide(rules, item)));
}

function stands({ itemId, decidedBy }: PlanItemFacts): PolicyItem {
  return { itemId, decision: "deny", decidedBy };
}

function decide(rules: readonly PolicyRule[], item: PlanItemFacts): PolicyItem {
  const { itemId } = item;
  const kind = item.kind === "unspecified" ? "resource" : item.kind;
  const rule = mostSpecific(rules.filter(({ match }) => matches(match, item, kind)));
  if (rule === undefined)
    return { itemId, decision: kind === "resource" ? "ask" : "allow", decidedBy: "policy:default" };
  const decidedBy = `policy:${rule.name}`;
  if (rule.action === "ask" && kind !== "resource") {
    return { itemId, decision: "deny", decidedBy, reason: `nobody can be asked about a ${kind} item` };
  }
  return { itemId, decision: rule.action, decidedBy, ...(rule.reason === undefined ? {} : { reason: rule.reason }) };
}

function matches(match: PolicyMatch, item: PlanItemFacts, kind: PolicyKind): boolean {
  return (
    (match.kind === undefined || match.kind === kind) &&
    (match.provider === undefined || match.provider === item.provider) &&
    (match.tool_name === undefined || match.tool_name === item.toolName) &&
    (match.risk === undefined || match.risk === item.risk)
  );
}

function mostSpecific(rules: readonly PolicyRule[]): PolicyRule | undefined {
  return rules.reduce<PolicyRule | undefined>(
    (best, rule) =>
      best === undefined || compareSpecificity(specificityOf(rule.match), specificityOf(best.match)) > 0 ? rule : best,
    undefined,
  );
}
