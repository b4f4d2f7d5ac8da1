// Package passthrough exposes everything of one upstream server to a client, and relays
// the messages of both through Airlock's upstream client. With it, suites for servers can
// test all of that client. Airlock itself exposes only five tools.
package passthrough

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// Handler serves MCP over streamable HTTP, in one of both eras, in front of a server.
type Handler struct {
	config upstream.Config
	era    http.Handler

	mu      sync.Mutex
	mirrors []*mirror
	shared  map[bool]*mirror // without sessions: by whether the client can be asked
	err     error            // the first that came up
}

var _ http.Handler = (*Handler)(nil)

// New returns a handler in front of a server. Close it in the end.
func New(config upstream.Config, stateless bool) *Handler {
	h := &Handler{config: config, shared: map[bool]*mirror{}}
	get := h.ofSession
	if stateless {
		get = h.ofRequest
	}
	h.era = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: stateless,
		EventStore: mcp.NewMemoryEventStore(nil)})
	return h
}

// elicitKey carries whether the client of a request can be asked.
type elicitKey struct{}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), elicitKey{}, declaresElicitation(body)))
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	h.era.ServeHTTP(w, r)
}

// declaresElicitation reads the capabilities in a request: those of initialize, and
// those that every request of MCP 2026-07-28 has.
func declaresElicitation(body []byte) bool {
	type capabilities struct {
		Elicitation json.RawMessage `json:"elicitation"`
	}
	var message struct {
		Params struct {
			Capabilities capabilities `json:"capabilities"`
			Meta         struct {
				Capabilities capabilities `json:"io.modelcontextprotocol/clientCapabilities"`
			} `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &message) != nil {
		return false
	}
	return message.Params.Capabilities.Elicitation != nil || message.Params.Meta.Capabilities.Elicitation != nil
}

// ofSession opens separate connections to the server for each session.
func (h *Handler) ofSession(r *http.Request) *mcp.Server {
	return h.serve(h.open(r))
}

// ofRequest shares connections among all requests whose clients can do the same.
func (h *Handler) ofRequest(r *http.Request) *mcp.Server {
	asks, _ := r.Context().Value(elicitKey{}).(bool)
	h.mu.Lock()
	m := h.shared[asks]
	h.mu.Unlock()
	if m != nil {
		return m.server
	}
	m, err := h.open(r)
	h.mu.Lock()
	h.shared[asks] = m
	h.mu.Unlock()
	return h.serve(m, err)
}

func (h *Handler) open(r *http.Request) (*mirror, error) {
	config := h.config
	config.Elicitation, _ = r.Context().Value(elicitKey{}).(bool)
	m, err := newMirror(context.WithoutCancel(r.Context()), config)
	h.mu.Lock()
	defer h.mu.Unlock()
	if m != nil {
		h.mirrors = append(h.mirrors, m)
	}
	return m, err
}

// serve returns the SDK's server; nil makes the SDK refuse the request.
func (h *Handler) serve(m *mirror, err error) *mcp.Server {
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err == nil {
			h.err = err
		}
		return nil
	}
	return m.server
}

// Close ends all connections to the server. It returns the first error that kept the
// handler from serving.
func (h *Handler) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.mirrors {
		if err := m.close(); err != nil && h.err == nil {
			h.err = fmt.Errorf("closing the connections to the server: %w", err)
		}
	}
	h.mirrors = nil
	return h.err
}
