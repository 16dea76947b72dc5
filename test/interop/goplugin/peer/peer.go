// Package peer holds what both ends of the tests agree on: the kernel's
// handshake, and its hook service as a plugin of the genuine go-plugin library.
package peer

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	infov1 "hookledger.example/protocol/hookledger/v1"
	hookv1 "hookledger.example/protocol/pluggableharness/hook/v1"
)

// Name is that of the one plugin in every set.
const Name = "hooks"

// Handshake is what the kernel expects of its own family of plugins.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "PLUGGABLEHARNESS_AGENT_PLUGIN",
	MagicCookieValue: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
}

// Hooks is the hook service as a plugin. A host leaves both fields nil.
type Hooks struct {
	plugin.NetRPCUnsupportedPlugin

	Service hookv1.HookSubscriberServiceServer
	// Info is optional.
	Info infov1.PluginInfoServer
}

// GRPCServer registers the services in a plugin.
func (h *Hooks) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	hookv1.RegisterHookSubscriberServiceServer(server, h.Service)
	if h.Info != nil {
		infov1.RegisterPluginInfoServer(server, h.Info)
	}
	return nil
}

// GRPCClient returns the host's end: the connection, for whichever client.
func (h *Hooks) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (interface{}, error) {
	return conn, nil
}
