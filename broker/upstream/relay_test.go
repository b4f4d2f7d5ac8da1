package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// person gives the same answer to all questions, and records questions and notifications.
type person struct {
	answer upstream.ElicitationAnswer
	err    error

	mu      sync.Mutex
	asked   []upstream.Elicitation
	notices []string
}

func (p *person) Elicit(_ context.Context, e upstream.Elicitation) (upstream.ElicitationAnswer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, e)
	p.mu.Unlock()
	return p.answer, p.err
}

func (p *person) LogLevel() string { return "" }

func (p *person) Notify(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notices = append(p.notices, method+" "+string(params))
}

var form = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"name":  map[string]any{"type": "string"},
		"color": map[string]any{"type": "string", "default": "green"},
	},
	"required": []any{"name"},
}

// asking is a server, over HTTP in one of both eras, whose tools ask and talk.
func asking(t *testing.T, stateless bool) upstream.Config {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	empty := &mcp.Tool{InputSchema: map[string]any{"type": "object"}}
	add := func(name string, handle mcp.ToolHandler) {
		tool := *empty
		tool.Name = name
		s.AddTool(&tool, handle)
	}
	said := func(v any) *mcp.CallToolResult {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(raw)}}}
	}
	questions := map[string]*mcp.ElicitParams{
		"form": {Message: "Who?", RequestedSchema: form},
		"url":  {Mode: "url", Message: "Sign in", URL: "https://example.com/in", ElicitationID: "e1"},
	}
	for name, question := range questions {
		add("ask_"+name, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if !stateless {
				given, err := r.Session.Elicit(ctx, question)
				if err != nil {
					return nil, err
				}
				return said(given), nil
			}
			if given, ok := r.Params.InputResponses["q"]; ok {
				if r.Params.RequestState != "state" {
					t.Errorf("got state %q back", r.Params.RequestState)
				}
				return said(given), nil
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question}, RequestState: "state"}, nil
		})
	}
	add("ask_again", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": questions["form"]}}, nil
	})
	add("talk", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
			Progress: 1, Total: 2, Message: "half"})
		return said("done"), err
	})
	handler := httptest.NewServer(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(handler.Close)
	return upstream.Config{ID: "asking", URL: handler.URL, Elicitation: true}
}

// A question reaches the person behind the call, names the server, and its answer
// goes to that server: in both eras, as a form and as a URL.
func TestElicitationReachesThePersonBehindTheCall(t *testing.T) {
	accept := upstream.ElicitationAnswer{Action: "accept", Content: json.RawMessage(`{"name":"Ann"}`)}
	tests := []struct {
		name, tool string
		answer     upstream.ElicitationAnswer
		want       string // in the tool's text
	}{
		{"a form, accepted; the default is added", "ask_form", accept,
			`{"action":"accept","content":{"color":"green","name":"Ann"}}`},
		{"a form, declined", "ask_form", upstream.ElicitationAnswer{Action: "decline", Content: accept.Content},
			`{"action":"decline"}`},
		{"a form, cancelled", "ask_form", upstream.ElicitationAnswer{Action: "cancel"}, `{"action":"cancel"}`},
		{"a URL, accepted; there is no content", "ask_url", accept, `{"action":"accept"}`},
	}
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		set := connect(t, nil, asking(t, era == "2026-07-28"))
		for _, test := range tests {
			t.Run(era+" "+test.name, func(t *testing.T) {
				p := &person{answer: test.answer}
				got, err := set.CallFor(t.Context(), p, "asking", test.tool, nil)
				if err != nil || text(t, got) != test.want {
					t.Errorf("got %s and %v, want %s", got, err, test.want)
				}
				if len(p.asked) != 1 || p.asked[0].ServerID != "asking" || p.asked[0].Message == "" {
					t.Fatalf("asked %+v, want one question that names the server", p.asked)
				}
				if q := p.asked[0]; (test.tool == "ask_url") != (q.URL == "https://example.com/in" && q.ID == "e1" &&
					q.Schema == nil) {
					t.Errorf("asked %+v", q)
				}
			})
		}
	}
}

// Nobody is asked if the configuration does not allow it, or if the call has no person. The
// server does not get an answer that is invalid for its form.
func TestElicitationIsRefused(t *testing.T) {
	tests := []struct {
		name    string
		allowed bool
		relay   *person
	}{
		{"by the configuration", false,
			&person{answer: upstream.ElicitationAnswer{Action: "accept", Content: json.RawMessage(`{"name":"Ann"}`)}}},
		{"without a relay", true, nil},
		{"by the relay", true, &person{err: errors.New("a secret reason")}},
		{"with content of another form", true,
			&person{answer: upstream.ElicitationAnswer{Action: "accept", Content: json.RawMessage(`{"name":7}`)}}},
		{"with content that is not an object", true,
			&person{answer: upstream.ElicitationAnswer{Action: "accept", Content: json.RawMessage(`[]`)}}},
		{"with an unknown action", true, &person{answer: upstream.ElicitationAnswer{Action: "maybe"}}},
	}
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		for _, test := range tests {
			t.Run(era+" "+test.name, func(t *testing.T) {
				config := asking(t, era == "2026-07-28")
				config.Elicitation = test.allowed
				set := connect(t, nil, config)
				var relay upstream.Relay
				if test.relay != nil {
					relay = test.relay
				}
				got, err := set.CallFor(t.Context(), relay, "asking", "ask_form", nil)
				if err == nil && !strings.Contains(string(got), `"isError":true`) {
					t.Errorf("got %s, want an error", got)
				}
				if shown := string(got) + errorText(err); strings.Contains(shown, "Ann") ||
					strings.Contains(shown, "a secret reason") {
					t.Errorf("got %s, which tells more than that nobody was asked", shown)
				}
				if !test.allowed && len(test.relay.asked) > 0 {
					t.Errorf("asked %+v", test.relay.asked)
				}
			})
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestInputIsAskedForOnlySoOften(t *testing.T) {
	set := connect(t, nil, asking(t, true))
	p := &person{answer: upstream.ElicitationAnswer{Action: "decline"}}
	_, err := set.CallFor(t.Context(), p, "asking", "ask_again", nil)
	var failed *upstream.CallError
	if !errors.As(err, &failed) || failed.Type != upstream.ToolError || len(p.asked) != 9 {
		t.Errorf("got %v after %d questions, want a tool error after 9", err, len(p.asked))
	}
}

func TestProgressIsHeard(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		p := &person{}
		if _, err := connect(t, nil, asking(t, stateless)).CallFor(t.Context(), p, "asking", "talk", nil); err != nil {
			t.Fatal(err)
		}
		want := []string{`notifications/progress {"message":"half","progress":1,"total":2}`}
		if diff := cmp.Diff(want, p.notices); diff != "" {
			t.Errorf("notices differ (-want +got):\n%s", diff)
		}
	}
}

// On one pipe a question carries no hint about its call: with two calls open it
// could be for either person, so it is for neither.
func TestAQuestionThatCouldBeForTwoIsForNobody(t *testing.T) {
	config, notes := upstreamtest.Fake(t, "good")
	config.Elicitation = true
	set := connect(t, nil, config)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	other, own := &person{answer: upstream.ElicitationAnswer{Action: "accept"}},
		&person{answer: upstream.ElicitationAnswer{Action: "accept"}}
	ask := json.RawMessage(
		`{"method":"elicitation/create","params":{"message":"Who?","_meta":{"airlock/exchange":"1"}}}`)
	if got, err := set.CallFor(t.Context(), own, "good", "ask", ask); err != nil ||
		!strings.Contains(string(got), `"action":"accept"`) {
		t.Fatalf("alone: got %s and %v", got, err)
	}
	running.Go(func() { set.CallFor(ctx, other, "good", "slow", nil) })
	testenv.Await(t, "the slow call", func() bool { return len(notes.Lines(t, "call slow")) == 1 })
	got, err := set.CallFor(t.Context(), own, "good", "ask", ask)
	if err != nil || !strings.Contains(string(got), "belongs to no request") || len(other.asked) > 0 ||
		len(own.asked) != 1 {
		t.Errorf("got %s and %v, asked %v and %v", got, err, own.asked, other.asked)
	}
	cancel()
	running.Wait()
}
