package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// perSession is how many jobs a host gives in one session before it begins another.
const perSession = 40

// host is an agent host with a session over HTTP. One job at a time uses it.
type host struct {
	d       *daemon
	session *mcp.ClientSession // nil if none is open
	given   int                // in this session
	web     *http.Transport

	mu      sync.Mutex
	approve bool // the person's current answer
}

// bearer sends the token with each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// decide is the person at the host.
func (h *host) decide(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.approve {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve this call"}}, nil
}

func (h *host) open(ctx context.Context) error {
	if h.session != nil && h.given < perSession {
		return nil
	}
	if err := h.close(); err != nil {
		return err
	}
	h.web = &http.Transport{}
	client := mcp.NewClient(&mcp.Implementation{Name: "soak", Version: "1"},
		&mcp.ClientOptions{ElicitationHandler: h.decide})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: h.d.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{h.d.token, h.web}},
	}, nil)
	if err != nil {
		return fmt.Errorf("beginning a session: %w", err)
	}
	h.session, h.given = session, 0
	return nil
}

// close ends the session. Calling it twice is fine.
func (h *host) close() error {
	if h.session == nil {
		return nil
	}
	err := h.session.Close()
	h.web.CloseIdleConnections()
	h.session = nil
	return err
}

// errBusy is returned if the daemon asks to retry a job later.
var errBusy = errors.New("the daemon is busy")

// give runs a job and returns what is wrong with its answer, or errBusy if all slots are in
// use.
func (h *host) give(ctx context.Context, j job) error {
	if err := h.open(ctx); err != nil {
		return err
	}
	h.given++
	h.mu.Lock()
	h.approve = j.approve
	h.mu.Unlock()
	result, err := h.session.CallTool(ctx, &mcp.CallToolParams{Name: "run_code",
		Arguments: map[string]any{"language": j.language, "code": j.code}})
	if err != nil {
		return err
	}
	text, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	var run struct {
		OK    bool
		Data  json.RawMessage
		Error struct {
			Type      string
			Retryable bool
		}
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return fmt.Errorf("the answer %.200s: %w", text, err)
	}
	switch {
	case run.Error.Retryable:
		return fmt.Errorf("%w: %s", errBusy, run.Error.Type)
	case j.want == "" && run.Error.Type == "ValueError", j.want != "" && run.OK && string(run.Data) == j.want:
		return nil
	}
	return fmt.Errorf("got %.300s, want %s", text, j.want)
}
