// Command peerhost is a host of the genuine go-plugin library: it starts the
// plugin that its arguments name, or reattaches to one, and does what its
// standard input says, one JSON object a line, all at the same time unless a
// line says `then`. What happens goes to standard output, one JSON object a
// line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/golang/protobuf/proto"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"hookledger.example/peer"
	infov1 "hookledger.example/protocol/hookledger/v1"
	hookv1 "hookledger.example/protocol/pluggableharness/hook/v1"
)

// order is one line of standard input.
type order struct {
	// Op is call, describe, ping, drop, reattach, kill or exit.
	Op string `json:"op"`
	ID string `json:"id"`
	// Request is an encoded DispatchHookRequest, of a call.
	Request []byte `json:"request"`
	// TimeoutMs is the call's deadline; 0: none.
	TimeoutMs int `json:"timeoutMs"`
	// CancelMs is when the host cancels the call; 0: never.
	CancelMs int `json:"cancelMs"`
	// Then waits for everything that was ordered before.
	Then bool `json:"then"`
}

// report is one line of standard output.
type report struct {
	Event string `json:"event"`
	ID    string `json:"id,omitempty"`
	// Response is an encoded DispatchHookResponse.
	Response []byte `json:"response,omitempty"`
	// Code and Error are of the gRPC status.
	Code  string  `json:"code,omitempty"`
	Error string  `json:"error,omitempty"`
	Text  string  `json:"text,omitempty"`
	Pid   int     `json:"pid,omitempty"`
	Ms    float64 `json:"ms"`
}

// host is one plugin process, seen from its host.
type host struct {
	client *plugin.Client
	conn   *grpc.ClientConn

	writing sync.Mutex
	out     *json.Encoder
}

func main() {
	autoMTLS := flag.Bool("auto-mtls", false, "encrypt, each side with a one-use certificate")
	stdio := flag.Bool("stdio", false, "report what the plugin writes to its standard error")
	reattach := flag.String("reattach", "", "a plugin that runs already, as one entry of Terraform's reattach variable")
	flag.Parse()

	h := &host{out: json.NewEncoder(os.Stdout)}
	config := h.config()
	if *reattach != "" {
		config.Reattach = attachment(*reattach)
	} else {
		config.Cmd = exec.Command(flag.Arg(0), flag.Args()[1:]...)
		config.AutoMTLS = *autoMTLS
		config.StartTimeout = 20 * time.Second
	}
	if *stdio {
		config.Stderr = lines{h, "stderr"}
	}
	began := time.Now()
	if err := h.connect(config); err != nil {
		h.say(report{Event: "failed", Error: err.Error()})
		h.client.Kill()
		os.Exit(1)
	}
	at := h.client.ReattachConfig()
	h.say(report{Event: "started", Pid: at.Pid, Text: at.Addr.String(), Ms: since(began)})

	var running sync.WaitGroup
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for orders := json.NewDecoder(in); orders.More(); {
		var next order
		if err := orders.Decode(&next); err != nil {
			panic(err)
		}
		if next.Then {
			running.Wait()
		}
		running.Add(1)
		go func() {
			defer running.Done()
			h.follow(next)
		}()
	}
	running.Wait()
}

func (h *host) config() *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  peer.Handshake,
		Plugins:          plugin.PluginSet{peer.Name: &peer.Hooks{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: lines{h, "log"}, Level: hclog.Debug, JSONFormat: true}),
	}
}

// attachment reads one entry of the variable that a plugin under a debugger
// prints. Of its addresses only those of Unix sockets are needed here.
func attachment(text string) *plugin.ReattachConfig {
	var entry struct {
		Protocol plugin.Protocol
		Pid      int
		Addr     struct{ Network, String string }
	}
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		panic(err)
	}
	return &plugin.ReattachConfig{
		Protocol: entry.Protocol,
		Pid:      entry.Pid,
		Addr:     &net.UnixAddr{Net: entry.Addr.Network, Name: entry.Addr.String},
	}
}

// connect starts the plugin, or reattaches to it, and takes up the connection.
func (h *host) connect(config *plugin.ClientConfig) error {
	h.client = plugin.NewClient(config)
	protocol, err := h.client.Client()
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense(peer.Name)
	if err != nil {
		return err
	}
	h.conn = raw.(*grpc.ClientConn)
	return nil
}

func (h *host) follow(o order) {
	began := time.Now()
	out := report{Event: o.Op, ID: o.ID}
	var err error
	switch o.Op {
	case "call":
		out.Response, out.Text, err = h.call(o)
	case "describe":
		out.Text, err = h.describe()
	case "ping":
		err = h.ping()
	case "drop":
		err = h.drop()
	case "reattach":
		err = h.reattach()
	case "kill":
		h.client.Kill()
	case "exit":
		os.Exit(0)
	default:
		err = fmt.Errorf("%q is no order", o.Op)
	}
	out.Ms = since(began)
	if err != nil {
		out.Code, out.Error = status.Code(err).String(), status.Convert(err).Message()
	}
	h.say(out)
}

// call makes one hook call, and returns the answer and the reason in its trailer.
func (h *host) call(o order) ([]byte, string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if o.TimeoutMs > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.TimeoutMs)*time.Millisecond)
		defer cancel()
	}
	if o.CancelMs > 0 {
		time.AfterFunc(time.Duration(o.CancelMs)*time.Millisecond, cancel)
	}
	request := &hookv1.DispatchHookRequest{}
	if err := proto.Unmarshal(o.Request, request); err != nil {
		return nil, "", err
	}
	var trailer metadata.MD
	answer, err := hookv1.NewHookSubscriberServiceClient(h.conn).DispatchHook(ctx, request, grpc.Trailer(&trailer))
	reason := strings.Join(trailer.Get("hookledger-reason"), ",")
	if err != nil {
		return nil, reason, err
	}
	encoded, err := proto.Marshal(answer)
	return encoded, reason, err
}

// describe returns what the plugin says of itself, as protobuf's text.
func (h *host) describe() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := infov1.NewPluginInfoClient(h.conn).Describe(ctx, &infov1.DescribeRequest{})
	return proto.CompactTextString(answer), err
}

// ping is the library's own health check.
func (h *host) ping() error {
	protocol, err := h.client.Client()
	if err != nil {
		return err
	}
	return protocol.Ping()
}

// drop connects to the plugin and goes away without a word.
func (h *host) drop() error {
	at := h.client.ReattachConfig().Addr
	conn, err := net.Dial(at.Network(), at.String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// reattach goes on with a second client of the process that is there. The
// library connects once and hangs up before it dials.
func (h *host) reattach() error {
	config := h.config()
	config.Reattach = h.client.ReattachConfig()
	return h.connect(config)
}

func (h *host) say(r report) {
	h.writing.Lock()
	defer h.writing.Unlock()
	h.out.Encode(r)
}

// lines reports what is written to it.
type lines struct {
	host  *host
	event string
}

func (l lines) Write(text []byte) (int, error) {
	l.host.say(report{Event: l.event, Text: string(text)})
	return len(text), nil
}

func since(began time.Time) float64 {
	return float64(time.Since(began).Microseconds()) / 1000
}
