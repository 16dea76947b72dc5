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
