// Command peerplugin is a plugin of the genuine go-plugin library. Its
// arguments say how it starts and ends otherwise than a good plugin would;
// its payloads say how it answers (see orders.go).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"hookledger.example/peer"
	infov1 "hookledger.example/protocol/hookledger/v1"
	commonv1 "hookledger.example/protocol/pluggableharness/common/v1"
)

// The library puts pipes in the place of these two once it serves.
var stdout, stderr = os.Stdout, os.Stderr

func main() {
	manner := map[string]bool{}
	for _, arg := range os.Args[1:] {
		manner[arg] = true
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "peer", Level: hclog.Debug, Output: stderr, JSONFormat: true})

	if manner["ignore-term"] {
		signal.Ignore(syscall.SIGTERM)
	}
	if manner["grandchild"] {
		grandchild()
	}
	if manner["chatty"] {
		noise(stderr, 4)
	}
	if manner["stray"] {
		fmt.Println("loading the \x1b[31mmodel\x1b[0m, please wait")
	}
	if manner["exit-early"] {
		fmt.Fprintln(stderr, "cannot read /etc/peer.conf")
		os.Exit(3)
	}
	if manner["silent"] {
		time.Sleep(time.Hour)
	}
	if manner["core-2"] {
		fmt.Println("2|1|unix|/nowhere/plugin.sock|grpc|")
		time.Sleep(time.Hour)
	}

	hooks := &peer.Hooks{Service: &service{log: log}}
	if !manner["no-info"] {
		hooks.Info = info{}
	}
	if manner["tcp"] {
		serveTCP(hooks)
		return
	}

	config := &plugin.ServeConfig{
		HandshakeConfig: peer.Handshake,
		Plugins:         plugin.PluginSet{peer.Name: hooks},
		GRPCServer:      plugin.DefaultGRPCServer,
		Logger:          log,
	}
	if manner["app-7"] {
		config.ProtocolVersion = 7
	}
	if manner["netrpc"] {
		config.GRPCServer = nil
	}
	if manner["ignore-shutdown"] {
		config.GRPCServer = deafServer
	}
	plugin.Serve(config)
	if manner["linger"] {
		time.Sleep(time.Hour)
	}
}

// deafServer never hears of the controller's Shutdown: the library itself
// offers no way to refuse it.
func deafServer(options []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options, grpc.UnaryInterceptor(func(
		ctx context.Context, request interface{}, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
	) (interface{}, error) {
		if strings.HasSuffix(call.FullMethod, "GRPCController/Shutdown") {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return handle(ctx, request)
	}))...)
}

// info is what the plugin says of itself.
type info struct{}

func (info) Describe(context.Context, *infov1.DescribeRequest) (*infov1.DescribeResponse, error) {
	return &infov1.DescribeResponse{
		Name:     "peer",
		Version:  "1.4.2",
		Category: commonv1.Category_CATEGORY_TOOL,
		SupportedHookPoints: []commonv1.HookPoint{
			commonv1.HookPoint_HOOK_POINT_SESSION_START,
			commonv1.HookPoint_HOOK_POINT_PRE_MODEL_CALL,
			commonv1.HookPoint_HOOK_POINT_PRE_TOOL_CALL,
			commonv1.HookPoint_HOOK_POINT_PLAN_READY,
			commonv1.HookPoint_HOOK_POINT_POST_TOOL_CALL,
		},
	}, nil
}
