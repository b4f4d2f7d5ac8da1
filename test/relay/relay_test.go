// Package relay has servers ask the person behind a call, through all of Airlock: the
// real program, real sandboxes, real hosts.
package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The eras of the protocol: in the first, a server asks during a call; in the second, the
// answer to a call contains the server's questions.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// booking is an MCP server that asks who travels before it books, and repeats the answer.
type booking struct {
	url string

	mu      sync.Mutex
	answers []string // that came
}

func (b *booking) came(answer any) {
	raw, _ := json.Marshal(answer)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, string(raw))
}

func (b *booking) all() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.answers, "\n")
}

var traveller = map[string]any{
	"type": "object", "required": []any{"name", "seat"},
	"properties": map[string]any{
		"name": map[string]any{"type": "string", "title": "Who travels?"},
		"seat": map[string]any{"type": "string", "enum": []any{"window", "aisle"}},
		"days": map[string]any{"type": "integer", "default": 3},
	},
}

func startBooking(t *testing.T, era string) *booking {
	t.Helper()
	b := &booking{}
	s := mcp.NewServer(&mcp.Implementation{Name: "booking", Version: "1"}, nil)
	questions := map[string]*mcp.ElicitParams{
		"book": {Message: "Who is it for?", RequestedSchema: traveller},
		"agree": {Message: "Is that all right?", RequestedSchema: map[string]any{"type": "object",
			"properties": map[string]any{}}},
		"pay": {Mode: "url", Message: "Pay here", URL: "https://pay.example/now?order=7", ElicitationID: "e1"},
		"trick": {Message: "x", RequestedSchema: map[string]any{"type": "object",
			"properties": map[string]any{"na\u200bme": map[string]any{"type": "string"}}}},
	}
	for name, question := range questions {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"},
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var given any
				if era == legacy {
					answer, err := r.Session.Elicit(ctx, question)
					if err != nil {
						return &mcp.CallToolResult{IsError: true,
							Content: []mcp.Content{&mcp.TextContent{Text: "not asked: " + err.Error()}}}, nil
					}
					given = answer
				} else {
					answer, ok := r.Params.InputResponses["q"]
					if !ok {
						return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question},
							RequestState: "s"}, nil
					}
					given = answer
				}
				b.came(given)
				raw, err := json.Marshal(given)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "got " + string(raw)}}}, err
			})
	}
	s.AddTool(&mcp.Tool{Name: "think", InputSchema: map[string]any{"type": "object"},
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			//lint:ignore SA1019 servers of the revision still ask for it
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.CreateMessageParams{MaxTokens: 9,
				//lint:ignore SA1019 servers of the revision still ask for it
				Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}}}}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: era == modern}))
	t.Cleanup(web.Close)
	b.url = web.URL
	return b
}

// host is an agent host whose person answers in one way.
type host struct {
	session *mcp.ClientSession
	said    *bytes.Buffer // what Airlock prints
	home    string

	mu    sync.Mutex
	asked []string // messages and forms
}

func (h *host) questions() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.asked, "\n")
}

// startHost starts airlock mcp in front of the server, for a host of one era. A host
// without an answer cannot ask.
func startHost(t *testing.T, b *booking, era, settings, more string, answer *mcp.ElicitResult) *host {
	t.Helper()
	env := testenv.OwnHome(t, "python")
	configuration := filepath.Join(t.TempDir(), "airlock.yaml")
	text := testenv.WithoutPool(fmt.Sprintf(
		"mcpServers: {booking: {url: %q}}\nservers: {booking: {trustAnnotations: true%s}}\nlimits: {approvalTimeout: "+
			"20s}\naudit: {clearArguments: true}\n%s\n", b.url, settings, more))
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &host{said: &bytes.Buffer{}, home: env.Home}
	options := &mcp.ClientOptions{}
	if answer != nil {
		options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			form, _ := json.Marshal(r.Params.RequestedSchema)
			h.asked = append(h.asked, r.Params.Mode+" "+r.Params.Message+" "+string(form)+" "+r.Params.URL)
			return answer, nil
		}
	}
	command := exec.Command(filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), "mcp", "--config", configuration)
	command.Stderr = h.said
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, options).Connect(
		t.Context(), &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatalf("%v\n%s", err, h.said)
	}
	t.Cleanup(func() { session.Close() }) // the second time it is closed already
	h.session = session
	return h
}

// call has code call a tool of the server, and returns the whole result of the run.
func (h *host) call(t *testing.T, tool string) string {
	t.Helper()
	code := fmt.Sprintf("from servers.booking import %s\nresult = str((await %s({})).data)", tool, tool)
	result, err := h.session.CallTool(t.Context(),
		&mcp.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": code}})
	if err != nil {
		t.Fatalf("%v\n%s", err, h.said)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const allowed = ", elicitation: true"

func TestAServersQuestionReachesTheHostsUser(t *testing.T) {
	testenv.Sandbox(t)
	typed := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada Lovelace", "seat": "aisle"}}
	agreed := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "yes: I agree, or have done it"}}
	tests := []struct {
		name, tool string
		answer     *mcp.ElicitResult
		asked      []string // is in the question
		came       string   // to the server
		result     []string // is in the result of the run
	}{
		{"a form that is filled in", "book", typed,
			[]string{"form ", "booking", "Who is it for?", "Who travels?", "passwords"}, `"name":"Ada Lovelace"`,
			[]string{`aisle`, `days`}},
		{"a form that is declined", "book", &mcp.ElicitResult{Action: "decline"}, []string{"booking"},
			`{"action":"decline"}`, []string{"decline"}},
		{"a form that is closed", "book", &mcp.ElicitResult{Action: "cancel"}, []string{"booking"},
			`{"action":"cancel"}`, []string{"cancel"}},
		{"an address", "pay", agreed, []string{"form ", "https://pay.example/now?order=7", "open it yourself"},
			`{"action":"accept"}`, []string{"accept"}},
		{"an address that is declined", "pay", &mcp.ElicitResult{Action: "accept",
			Content: map[string]any{"decision": "no"}}, []string{"pay.example"}, `{"action":"decline"}`,
			[]string{"decline"}},
		{"a field with a hidden character", "trick", typed, nil, "", []string{"asked"}},
	}
	for _, serverEra := range []string{legacy, modern} {
		for _, hostEra := range []string{legacy, modern} {
			for _, test := range tests {
				t.Run(fmt.Sprintf("server %s/host %s/%s", serverEra, hostEra, test.name), func(t *testing.T) {
					server := startBooking(t, serverEra)
					h := startHost(t, server, hostEra, allowed, "", test.answer)
					result := h.call(t, test.tool)
					for _, want := range test.asked {
						if !strings.Contains(h.questions(), want) {
							t.Errorf("the question does not have %q in it:\n%s", want, h.questions())
						}
					}
					if test.asked == nil && h.questions() != "" {
						t.Errorf("the person was asked:\n%s", h.questions())
					}
					if test.came == "" && server.all() != "" || !strings.Contains(server.all(), test.came) {
						t.Errorf("the server got %s, want %s", server.all(), test.came)
					}
					for _, want := range test.result {
						if !strings.Contains(result, want) {
							t.Errorf("got the result %s, want %q in it", result, want)
						}
					}
					h.leavesNothing(t, result, "Ada Lovelace")
				})
			}
		}
	}
}

// leavesNothing looks for what the person typed in everything that Airlock gave the
// sandbox, printed or wrote.
func (h *host) leavesNothing(t *testing.T, result, typed string) {
	t.Helper()
	if err := h.session.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if strings.Contains(result, typed) || strings.Contains(h.said.String(), typed) {
		t.Errorf("what the person typed came out:\n%s\n%s", result, h.said)
	}
	err := filepath.WalkDir(h.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(typed)) {
			t.Errorf("%q has what the person typed", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWhoMayNotAsk(t *testing.T) {
	testenv.Sandbox(t)
	answer := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada Lovelace", "seat": "aisle"}}
	policy := filepath.Join(t.TempDir(), "quiet.cedar")
	text := `@id("read") permit (principal, action, resource);
@id("quiet") @reason("no questions from here") forbid (principal, action in Action::"call", resource in Server::"booking") when { context.elicits };`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, tool, settings, more string
		answer                     *mcp.ElicitResult
		want                       string
	}{
		{"a server that the configuration says nothing about", "book", "", "", answer, ".elicitation)"},
		{"a server that a policy forbids it", "book", allowed, "policies: [" + policy + "]", answer,
			"no person could be asked"},
		{"a host without a person, about a form", "book", allowed, "", nil, "no person could be asked"},
		{"a server that wants a model", "think", allowed, "", answer, "model"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := startBooking(t, modern)
			h := startHost(t, server, modern, test.settings, test.more, test.answer)
			if result := h.call(t, test.tool); !strings.Contains(result, test.want) || h.questions() != "" ||
				server.all() != "" {
				t.Errorf("got %s, the question %q and the answer %q; want an error with %q", result, h.questions(),
					server.all(), test.want)
			}
		})
	}
}
