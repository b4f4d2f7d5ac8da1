package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/server/code"
	"github.com/airlock-mcp/airlock/app/server/servertest"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The eras of the protocol, as clients offer them: with a handshake and sessions up
// to 2025-11-25, and without them from 2026-07-28 on.
const (
	legacy = "legacy"
	modern = "modern"
)

// client is a real client of the protocol that is connected to Airlock.
type client interface {
	// hello is what the client learnt when it connected.
	hello() greeting
	list(t *testing.T) []tool
	call(t *testing.T, c toolCall) outcome
}

type greeting struct {
	Version      string `json:"version"`
	Server       string `json:"server"`
	Instructions string `json:"instructions"`
}

type tool struct {
	Name         string          `json:"name"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
}

// toolCall is one call. Answer is the person's answer to a question.
type toolCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Progress  bool           `json:"progress,omitempty"`
	Cancel    bool           `json:"cancel,omitempty"` // at the first progress
	Answer    *reply         `json:"answer,omitempty"`
}

type reply struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}

// outcome is what a client makes of a call.
type outcome struct {
	Result *struct {
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           bool            `json:"isError"`
		Content           []struct{ Type, Text string }
	} `json:"result"`
	Error *struct {
		Code    any    `json:"code"` // a number, or a client's name for it
		Message string `json:"message"`
	} `json:"error"`
	Progress []string `json:"progress"`
	Asked    []string `json:"asked"`
}

// text is all text of a result.
func (o outcome) text() string {
	if o.Result == nil {
		return ""
	}
	var all strings.Builder
	for _, c := range o.Result.Content {
		all.WriteString(c.Text)
	}
	return all.String()
}

// how is the way to reach Airlock: a command to start, or an address.
type how struct {
	SDK     string            `json:"sdk"`
	Era     string            `json:"era"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
}

// scripted is a client in another language: a program that reads what to do.
type scripted struct {
	*testenv.Program
	learned greeting
}

func startScripted(t *testing.T, to how, env []string, program ...string) client {
	t.Helper()
	told, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program[0], append(program[1:], string(told))...)
	command.Env = append(os.Environ(), env...)
	s := &scripted{Program: testenv.StartProgram(t, command)}
	line, err := s.Out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the client says nothing: %v\n%s", err, s.Err)
	}
	understand(t, line, &s.learned)
	return s
}

func understand(t *testing.T, line []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(line, into); err != nil {
		t.Fatalf("the client says %s: %v", line, err)
	}
}

func (s *scripted) do(t *testing.T, step, into any) {
	t.Helper()
	line, err := json.Marshal(step)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Ask(line)
	if err != nil {
		t.Fatalf("asking the client: %v", err)
	}
	understand(t, answer, into)
}

func (s *scripted) hello() greeting { return s.learned }

func (s *scripted) list(t *testing.T) []tool {
	t.Helper()
	var got struct{ Tools []tool }
	s.do(t, map[string]string{"op": "list"}, &got)
	return got.Tools
}

func (s *scripted) call(t *testing.T, c toolCall) outcome {
	t.Helper()
	var got outcome
	s.do(t, struct {
		Op string `json:"op"`
		toolCall
	}{"call", c}, &got)
	return got
}

// goClient is go-sdk's client.
type goClient struct {
	session *mcp.ClientSession

	mu     sync.Mutex
	answer *reply
	asked  []string
	heard  []string
	cancel context.CancelFunc // of the call under way, at progress; or nil
}

func startGo(t *testing.T, to how) client {
	t.Helper()
	c := &goClient{}
	made := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: c.elicit, ProgressNotificationHandler: c.progress,
	})
	version := "2026-07-28"
	if to.Era == legacy {
		version = "2025-11-25"
	}
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to.URL}
	if to.URL == "" {
		command := exec.Command(to.Command, to.Args...)
		for name, value := range to.Env {
			command.Env = append(command.Env, name+"="+value)
		}
		transport = &mcp.CommandTransport{Command: command}
	}
	session, err := made.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("closing the session: %v", err)
		}
	})
	c.session = session
	return c
}

func (c *goClient) elicit(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.Params.Message)
	return &mcp.ElicitResult{Action: c.answer.Action, Content: c.answer.Content}, nil
}

func (c *goClient) progress(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, r.Params.Message)
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *goClient) hello() greeting {
	r := c.session.InitializeResult()
	return greeting{Version: r.ProtocolVersion, Server: r.ServerInfo.Name, Instructions: r.Instructions}
}

func (c *goClient) list(t *testing.T) []tool {
	t.Helper()
	list, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var tools []tool
	convert(t, list.Tools, &tools)
	return tools
}

func (c *goClient) call(t *testing.T, call toolCall) outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	params := &mcp.CallToolParams{Name: call.Tool, Arguments: call.Arguments}
	c.mu.Lock()
	c.answer, c.asked, c.heard, c.cancel = call.Answer, nil, nil, nil
	if call.Cancel {
		c.cancel = cancel
	}
	c.mu.Unlock()
	if call.Progress || call.Cancel {
		params.SetProgressToken(t.Name())
	}
	result, err := c.session.CallTool(ctx, params)
	var got outcome
	if err != nil {
		convert(t, map[string]any{"error": map[string]any{"message": err.Error(), "code": codeOf(err)}}, &got)
	} else {
		convert(t, map[string]any{"result": result}, &got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	got.Asked, got.Progress = slices.Clone(c.asked), slices.Clone(c.heard)
	return got
}

func codeOf(err error) int64 {
	var answered *jsonrpc.Error
	if errors.As(err, &answered) {
		return answered.Code
	}
	return 0
}

// convert copies by way of JSON.
func convert(t *testing.T, from, into any) {
	t.Helper()
	raw, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// overHTTP serves all of Airlock over HTTP, as bin/airlock serves it on stdio, and
// returns its address.
func overHTTP(t *testing.T, configuration string) string {
	t.Helper()
	c, err := config.Load(configuration, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	testenv.OwnHome(t)
	opened, err := system.Open(t.Context(), c, system.Options{Serving: true, Tools: upstreams.CachedThenServers,
		Logger: slog.New(slog.DiscardHandler), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	face, err := code.New(opened, opened.Runs(), code.Options{
		Version: "test", Principal: "user:test", ServerIDs: opened.ServerIDs, Approvals: opened.Approvals(),
		Gate: opened.Gate(), Changes: opened,
	})
	if err != nil {
		t.Fatal(errors.Join(err, opened.Close()))
	}
	t.Cleanup(func() {
		face.Close()
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", face.Handler(servertest.LocalUser("user:test"), nil))
	return listen(t, mux)
}

// pythonClient is what make setup installs of clients/requirements.txt.
func pythonClient(t *testing.T) string {
	t.Helper()
	directory := filepath.Join(testenv.RepoRoot(t), "bin", "python-client")
	if _, err := os.Stat(filepath.Join(directory, "mcp")); err != nil {
		t.Fatalf("the Python client is not installed: %v\nhint: run make setup", err)
	}
	return directory
}
