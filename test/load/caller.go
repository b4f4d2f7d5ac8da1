package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// The revisions in which callers ask: in turn, with a session and without.
const (
	withSession    = "2025-11-25"
	withoutSession = "2026-07-28"
)

// caller sends requests and owns a run.
type caller struct {
	url, token, revision string
	session              string // of the protocol; empty without one
	name                 string // is what its run came to
	run                  string // its ID
	client               *http.Client
}

// errBusy is returned if the daemon asks to retry the request.
var errBusy = errors.New("busy")

// newCaller begins a conversation and makes a run, trying again while the daemon is busy.
func newCaller(ctx context.Context, url, token string, number int) (*caller, error) {
	c := &caller{
		url: url, token: token, revision: withSession, name: fmt.Sprintf("caller-%03d", number),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}},
	}
	if number%2 == 1 {
		c.revision = withoutSession
	} else if err := c.begin(ctx); err != nil {
		return nil, err
	}
	for {
		answer, err := c.call(ctx, "first", "run_code",
			map[string]any{"language": "python", "code": fmt.Sprintf("result = %q", c.name)})
		if errors.Is(err, errBusy) {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("making a run: %w", err)
		}
		if c.run = answer.StructuredContent.RunID; c.run == "" || !strings.Contains(answer.text(), c.name) {
			return nil, fmt.Errorf("making a run: got %+v", answer)
		}
		return c, nil
	}
}

// begin opens a session of the protocol.
func (c *caller) begin(ctx context.Context) error {
	params := map[string]any{"protocolVersion": c.revision, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "load", "version": "1"}}
	header, _, err := c.post(ctx, "initialize", "",
		map[string]any{"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": params})
	if err != nil {
		return fmt.Errorf("beginning: %w", err)
	}
	c.session = header.Get("Mcp-Session-Id")
	_, _, err = c.post(ctx, "notifications/initialized", "",
		map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return err
}

// result is what a tool answered.
type result struct {
	Content           []struct{ Text string }
	StructuredContent struct {
		RunID string `json:"run_id"`
		Error struct{ Type string }
	}
	IsError bool
}

func (r result) text() string {
	var all []string
	for _, block := range r.Content {
		all = append(all, block.Text)
	}
	return strings.Join(all, "\n")
}

// call calls a tool under an ID, which the answer has to have.
func (c *caller) call(ctx context.Context, id, tool string, arguments map[string]any) (result, error) {
	params := map[string]any{"name": tool, "arguments": arguments}
	if c.session == "" {
		const meta = "io.modelcontextprotocol/"
		params["_meta"] = map[string]any{meta + "protocolVersion": c.revision,
			meta + "clientInfo":         map[string]any{"name": "load", "version": "1"},
			meta + "clientCapabilities": map[string]any{}}
	}
	_, body, err := c.post(ctx, "tools/call", tool,
		map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
	if err != nil {
		return result{}, err
	}
	var answer struct {
		ID     any
		Result *result
		Error  json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return result{}, fmt.Errorf("%w in %.200q", err, body)
	}
	if answer.ID != id || answer.Result == nil {
		return result{}, fmt.Errorf("request %q of %s is answered %.300s", id, c.name, body)
	}
	if answer.Result.StructuredContent.Error.Type == "RateLimit" {
		return result{}, errBusy
	}
	return *answer.Result, nil
}

// post sends a message and returns the header and the message of the answer.
func (c *caller) post(ctx context.Context, method, name string, message map[string]any) (http.Header, []byte, error) {
	raw, err := json.Marshal(message)
	if err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/mcp", bytes.NewReader(raw))
	if err != nil {
		return nil, nil, err
	}
	for key, value := range map[string]string{
		"Authorization": "Bearer " + c.token, "Content-Type": "application/json",
		"Accept":               "application/json, text/event-stream",
		"Mcp-Protocol-Version": c.revision, "Mcp-Session-Id": c.session, "Mcp-Method": method, "Mcp-Name": name,
	} {
		if value != "" && (method != "initialize" || key != "Mcp-Protocol-Version") {
			r.Header.Set(key, value)
		}
	}
	res, err := c.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
		return nil, nil, errBusy
	case res.StatusCode/100 != 2:
		return nil, nil, fmt.Errorf("%s, %.300q", res.Status, body)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body = lastEvent(body)
	}
	return res.Header, body, nil
}

// lastEvent returns the data of the last event that has any: the answer comes last.
func lastEvent(stream []byte) []byte {
	var last []byte
	for line := range bytes.Lines(stream) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && len(bytes.TrimSpace(data)) > 0 {
			last = data
		}
	}
	return last
}
