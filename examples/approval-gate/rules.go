package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	structpb "github.com/golang/protobuf/ptypes/struct"

	planv1 "hookledger.example/protocol/pluggableharness/plan/v1"
	toolv1 "hookledger.example/protocol/pluggableharness/tool/v1"
)

// rules are the body of the provider block in agent.hcl.
type rules struct {
	Deny []rule `json:"deny"`
}

// rule denies what all of its fields fit; a field that is left out fits all.
type rule struct {
	// Tool and Provider are patterns: `*` stands for any characters but "/".
	Tool     string `json:"tool"`
	Provider string `json:"provider"`
	// Risk fits what is at least as risky: read_only, low, moderate, high or critical.
	Risk string `json:"risk"`
	// Argument names an argument of the call, which must hold Contains.
	Argument string `json:"argument"`
	Contains string `json:"contains"`
	// Reason is what the person in front of the agent reads.
	Reason string `json:"reason"`
}

// action is a tool call, whether it stands alone or in a plan.
type action struct {
	tool      string
	provider  string
	risk      toolv1.RiskClass
	arguments *structpb.Struct
}

// parseRules reads the rules, and refuses what it does not know: a rule that
// is misspelt must not become a rule that never fits, or one that always does.
func parseRules(text string) (*rules, error) {
	found := &rules{}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(found); err != nil {
		return nil, err
	}
	for i, r := range found.Deny {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return found, nil
}

func (r rule) check() error {
	if r.Reason == "" {
		return fmt.Errorf("a reason is missing")
	}
	if (r.Argument == "") != (r.Contains == "") {
		return fmt.Errorf("argument and contains go together")
	}
	if r.Tool == "" && r.Provider == "" && r.Risk == "" && r.Argument == "" {
		return fmt.Errorf("it would deny everything: say what it is about")
	}
	for _, pattern := range []string{r.Tool, r.Provider} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q is no pattern", pattern)
		}
	}
	if r.Risk != "" && riskNamed(r.Risk) == toolv1.RiskClass_RISK_CLASS_UNSPECIFIED {
		return fmt.Errorf("%q is no risk", r.Risk)
	}
	return nil
}

// judge returns the reason of the first rule that fits, or "" to allow.
func (rs *rules) judge(a action) string {
	for _, r := range rs.Deny {
		if r.fits(a) {
			return fmt.Sprintf("%s: %s", a.tool, r.Reason)
		}
	}
	return ""
}

func (r rule) fits(a action) bool {
	// A risk that nobody named is taken for the highest.
	risk := a.risk
	if risk == toolv1.RiskClass_RISK_CLASS_UNSPECIFIED {
		risk = toolv1.RiskClass_RISK_CLASS_CRITICAL
	}
	return matches(r.Tool, a.tool) &&
		matches(r.Provider, a.provider) &&
		(r.Risk == "" || risk >= riskNamed(r.Risk)) &&
		(r.Argument == "" || strings.Contains(a.arguments.GetFields()[r.Argument].GetStringValue(), r.Contains))
}

func matches(pattern, name string) bool {
	fits, err := path.Match(pattern, name)
	return pattern == "" || err == nil && fits
}

// riskNamed is UNSPECIFIED, the zero, for a name that is none.
func riskNamed(name string) toolv1.RiskClass {
	return toolv1.RiskClass(toolv1.RiskClass_value["RISK_CLASS_"+strings.ToUpper(name)])
}

func planned(item *planv1.PlanItem) action {
	return action{item.GetOperationName(), item.GetProvider(), item.GetRisk(), item.GetInput()}
}

func called(call *toolv1.ToolCall, item *planv1.PlanItem) action {
	return action{call.GetToolName(), item.GetProvider(), item.GetRisk(), call.GetArguments()}
}
