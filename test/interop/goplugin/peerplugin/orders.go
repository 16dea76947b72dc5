package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/golang/protobuf/proto"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	contentv1 "hookledger.example/protocol/pluggableharness/content/v1"
	hookv1 "hookledger.example/protocol/pluggableharness/hook/v1"
)

// service answers as the payload orders: the order is a word and what it is
// about, in the field that order reads.
type service struct {
	log hclog.Logger
}

// order finds the words in the first text a person or a model would have
// written at the point.
func order(payload *hookv1.HookPayload) string {
	switch p := payload.GetPayload().(type) {
	case *hookv1.HookPayload_SessionStart:
		return p.SessionStart.GetProfile()
	case *hookv1.HookPayload_PreModelCall:
		for _, message := range p.PreModelCall.GetMessages() {
			for _, block := range message.GetContent() {
				if text, ok := block.GetBlock().(*contentv1.ContentBlock_Text); ok {
					return text.Text.GetText()
				}
			}
		}
	case *hookv1.HookPayload_PreToolCall:
		return p.PreToolCall.GetCall().GetToolName()
	case *hookv1.HookPayload_PlanReady:
		return p.PlanReady.GetPlan().GetTurnId()
	case *hookv1.HookPayload_PostToolCall:
		return p.PostToolCall.GetCall().GetToolName()
	}
	return ""
}

// DispatchHook answers one call.
func (s *service) DispatchHook(ctx context.Context, in *hookv1.DispatchHookRequest) (*hookv1.DispatchHookResponse, error) {
	words := strings.SplitN(order(in.GetPayload()), " ", 2)
	rest := words[len(words)-1]
	amount, _ := strconv.Atoi(rest)
	switch words[0] {
	case "deny":
		return deny(ctx, rest), nil
	case "say":
		return say(ctx, in, rest), nil
	case "upper":
		return rewrite(in, strings.ToUpper), nil
	case "unset":
		return &hookv1.DispatchHookResponse{}, nil
	case "other":
		if in.GetMode() == hookv1.HookMode_HOOK_MODE_OBSERVE {
			return allow(), nil
		}
		return acknowledge(), nil
	case "fail":
		return nil, errors.New(rest)
	case "panic":
		panic("a bug of the plugin's own")
	case "exit":
		os.Exit(amount)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	case "freeze":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Hour)
	case "mute":
		stdout.Close()
		stderr.Close()
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "stuck":
		time.Sleep(time.Hour)
	case "stderr":
		noise(stderr, amount)
	case "stdout":
		noise(stdout, amount)
	case "library":
		fmt.Fprint(os.Stdout, strings.Repeat("x", amount<<10))
	case "grandchild":
		return say(ctx, in, strconv.Itoa(grandchild())), nil
	case "environment":
		return say(ctx, in, environment()), nil
	case "metadata":
		received, _ := metadata.FromIncomingContext(ctx)
		return say(ctx, in, asJSON(received)), nil
	case "log":
		s.log.Warn("judged with doubts", "tool", rest, "count", 3)
		fmt.Fprintln(stderr, "[ERROR] not JSON: "+rest)
	}
	return say(ctx, in, ""), nil
}

// say answers well in the mode that is asked for: a text becomes the messages'
// in a transform, and a deny with a reason in a veto.
func say(ctx context.Context, in *hookv1.DispatchHookRequest, text string) *hookv1.DispatchHookResponse {
	switch in.GetMode() {
	case hookv1.HookMode_HOOK_MODE_TRANSFORM:
		return rewrite(in, func(was string) string {
			if text == "" {
				return was
			}
			return text
		})
	case hookv1.HookMode_HOOK_MODE_VETO:
		if text != "" {
			return deny(ctx, text)
		}
		return allow()
	}
	return acknowledge()
}

// rewrite keeps everything but the texts, also what this build does not know.
func rewrite(in *hookv1.DispatchHookRequest, with func(string) string) *hookv1.DispatchHookResponse {
	payload := proto.Clone(in.GetPayload()).(*hookv1.HookPayload)
	for _, message := range payload.GetPreModelCall().GetMessages() {
		for _, block := range message.GetContent() {
			if text, ok := block.GetBlock().(*contentv1.ContentBlock_Text); ok {
				text.Text.Text = with(text.Text.GetText())
			}
		}
	}
	return &hookv1.DispatchHookResponse{Outcome: &hookv1.DispatchHookResponse_Transform{
		Transform: &hookv1.DispatchHookResponse_TransformResult{Payload: payload},
	}}
}

func acknowledge() *hookv1.DispatchHookResponse {
	return &hookv1.DispatchHookResponse{Outcome: &hookv1.DispatchHookResponse_Observe{
		Observe: &hookv1.DispatchHookResponse_ObserveAck{},
	}}
}

func allow() *hookv1.DispatchHookResponse {
	return decide(hookv1.HookDecision_HOOK_DECISION_ALLOW)
}

func deny(ctx context.Context, reason string) *hookv1.DispatchHookResponse {
	grpc.SetTrailer(ctx, metadata.Pairs("hookledger-reason", url.PathEscape(reason)))
	return decide(hookv1.HookDecision_HOOK_DECISION_DENY)
}

func decide(decision hookv1.HookDecision) *hookv1.DispatchHookResponse {
	return &hookv1.DispatchHookResponse{Outcome: &hookv1.DispatchHookResponse_Veto{
		Veto: &hookv1.DispatchHookResponse_VetoResult{Decision: decision},
	}}
}

// environment describes the process as its host made it.
func environment() string {
	folder, _ := os.Getwd()
	mode := ""
	if at, err := os.Stat(os.TempDir()); err == nil {
		mode = fmt.Sprintf("%o", at.Mode().Perm())
	}
	return asJSON(map[string]interface{}{
		"pid":           os.Getpid(),
		"arguments":     os.Args[1:],
		"environment":   os.Environ(),
		"folder":        folder,
		"temporary":     os.TempDir(),
		"temporaryMode": mode,
	})
}

func asJSON(value interface{}) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// grandchild leaves a process behind that holds on to this one's output. It
// goes by this one's arguments, by which a test finds it.
func grandchild() int {
	sleep := exec.Command("sleep", "600")
	sleep.Args[0] = "grandchild " + strings.Join(os.Args[1:], " ")
	sleep.Stdout, sleep.Stderr = stdout, stderr
	if err := sleep.Start(); err != nil {
		panic(err)
	}
	return sleep.Process.Pid
}

// noise writes so many MiB in lines.
func noise(out io.Writer, mebibytes int) {
	line := []byte(strings.Repeat("noise ", 170) + "...\n")
	for i := 0; i < mebibytes<<10; i++ {
		if _, err := out.Write(line); err != nil {
			panic(err)
		}
	}
}
