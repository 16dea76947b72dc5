// Command approval-gate is a plugin that denies tool calls and plans by the
// rules in its provider block. It is what a plugin in Go looks like: the
// genuine hashicorp/go-plugin library, and the generated hook service.
package main

import (
	"context"
	"net/url"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	infov1 "hookledger.example/protocol/hookledger/v1"
	commonv1 "hookledger.example/protocol/pluggableharness/common/v1"
	hookv1 "hookledger.example/protocol/pluggableharness/hook/v1"
)

// handshake is that of every plugin of this kernel.
var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "PLUGGABLEHARNESS_AGENT_PLUGIN",
	MagicCookieValue: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
}

func main() {
	// Lines of hclog on standard error end up in the kernel's own log.
	log := hclog.New(&hclog.LoggerOptions{Name: "approval-gate", Output: os.Stderr, JSONFormat: true})

	config := os.Getenv("HOOKLEDGER_PROVIDER_CONFIG")
	if config == "" {
		config = "{}"
	}
	rules, err := parseRules(config)
	if err != nil {
		log.Error("the provider block cannot be used", "error", err)
		os.Exit(1)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         plugin.PluginSet{"hooks": &hooks{gate: &gate{rules: rules, log: log}}},
		GRPCServer:      plugin.DefaultGRPCServer,
		Logger:          log,
	})
}

// hooks registers the two services on the library's server.
type hooks struct {
	plugin.NetRPCUnsupportedPlugin
	gate *gate
}

func (h *hooks) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	hookv1.RegisterHookSubscriberServiceServer(server, h.gate)
	infov1.RegisterPluginInfoServer(server, h.gate)
	return nil
}

// GRPCClient is a host's business.
func (h *hooks) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (interface{}, error) {
	return nil, status.Error(codes.Unimplemented, "this is a plugin")
}

// gate answers the kernel.
type gate struct {
	hookv1.UnimplementedHookSubscriberServiceServer
	infov1.UnimplementedPluginInfoServer

	rules *rules
	log   hclog.Logger
}

// Describe is optional: it lets the kernel check versions and points early.
func (g *gate) Describe(context.Context, *infov1.DescribeRequest) (*infov1.DescribeResponse, error) {
	return &infov1.DescribeResponse{
		Name:     "approval-gate",
		Version:  "1.0.0",
		Category: commonv1.Category_CATEGORY_TOOL,
		SupportedHookPoints: []commonv1.HookPoint{
			commonv1.HookPoint_HOOK_POINT_PRE_TOOL_CALL,
			commonv1.HookPoint_HOOK_POINT_PLAN_READY,
		},
	}, nil
}

// DispatchHook judges one call or one plan. An error is a deny, too: the
// kernel lets nothing through that nobody allowed.
func (g *gate) DispatchHook(ctx context.Context, in *hookv1.DispatchHookRequest) (*hookv1.DispatchHookResponse, error) {
	if in.GetMode() != hookv1.HookMode_HOOK_MODE_VETO {
		return nil, status.Errorf(codes.Unimplemented, "this gate vetoes; it cannot %s", in.GetMode())
	}
	var actions []action
	switch payload := in.GetPayload().GetPayload().(type) {
	case *hookv1.HookPayload_PreToolCall:
		actions = append(actions, called(payload.PreToolCall.GetCall(), payload.PreToolCall.GetPlanItem()))
	case *hookv1.HookPayload_PlanReady:
		for _, item := range payload.PlanReady.GetPlan().GetItems() {
			actions = append(actions, planned(item))
		}
	default:
		return nil, status.Error(codes.Unimplemented, "this gate judges tool calls and plans")
	}
	for _, a := range actions {
		if reason := g.rules.judge(a); reason != "" {
			g.log.Info("denied", "tool", a.tool, "reason", reason)
			return g.deny(ctx, reason)
		}
	}
	return decided(hookv1.HookDecision_HOOK_DECISION_ALLOW), nil
}

// deny sends the reason along: it is shown and recorded, and decides nothing.
func (g *gate) deny(ctx context.Context, reason string) (*hookv1.DispatchHookResponse, error) {
	if err := grpc.SetTrailer(ctx, metadata.Pairs("hookledger-reason", url.PathEscape(reason))); err != nil {
		return nil, err
	}
	return decided(hookv1.HookDecision_HOOK_DECISION_DENY), nil
}

func decided(decision hookv1.HookDecision) *hookv1.DispatchHookResponse {
	return &hookv1.DispatchHookResponse{Outcome: &hookv1.DispatchHookResponse_Veto{
		Veto: &hookv1.DispatchHookResponse_VetoResult{Decision: decision},
	}}
}
