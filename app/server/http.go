package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionTimeout is how long an HTTP session may be silent before it ends.
const sessionTimeout = 30 * time.Minute

// stateless is the first revision whose requests stand alone, without a session.
const stateless = "2026-07-28"

// Listen opens a TCP address for Handler, which must be of the loopback interface.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", address, err)
	}
	if !isLoopback(host) {
		return nil, &refusal{fmt.Sprintf("the address %q can be reached from other machines", address), "listen on 127.0.0.1"}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w", address, err)
	}
	return l, nil
}

// Handler returns MCP over streamable HTTP, for one path such as /mcp. It
// answers only requests that name the loopback interface as their host, come
// from no foreign web page (MCP 2025-11-25, Transports, Security Warning), and
// are of a caller whom identify knows.
func (s *Server) Handler(identify Identify) http.Handler {
	get := func(*http.Request) *mcp.Server { return s.mcp }
	logger := slog.New(quiet{s.logger.Handler()})
	return guard(authenticated(identify, &router{
		end: s.endSession, callers: s.callers,
		sessions: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger:              logger,
			SessionTimeout:      sessionTimeout,
			MaxRequestBodyBytes: MaxMessage,
			// A host that loses its connection during a long run can fetch the answer later.
			EventStore: mcp.NewMemoryEventStore(nil),
		}),
		standalone: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger:              logger,
			Stateless:           true,
			MaxRequestBodyBytes: MaxMessage,
			// A request stands alone here: its answer cannot be fetched later.
			PropagateRequestCancellation: true,
		}),
	}))
}

// guard refuses requests that a web page could have caused: by a name that was
// made to resolve to this machine, or across origins.
func guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(hostOf(r.Host)) {
			http.Error(w, "the host of the request is not this machine", http.StatusForbidden)
			return
		}
		// Check alone lets every GET pass, and a request without the headers of a browser.
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
			http.Error(w, "the origin of the request is another site", http.StatusForbidden)
			return
		}
		if err := crossOrigin.Check(r); err != nil {
			http.Error(w, "the origin of the request is another site", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// router serves both eras of the protocol at one address: the SDK wants one
// handler for revisions with sessions and another for those without.
type router struct {
	sessions, standalone http.Handler
	callers              *callers
	end                  func(sessionID string)
}

// ServeHTTP passes the request to the handler of its era.
func (t *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		// The SDK waits for the requests of a session that it ends, and they for their runs.
		t.end(t.callers.ofSession(r))
	}
	if r.Method != http.MethodPost {
		t.sessions.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, fmt.Sprintf("the message has more than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, forHost, _ := tooDeep(body)
	switch {
	case forHost:
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer) // an error means that the client has disconnected
	case refuseMisshapen(w, body):
	case r.Header.Get("Mcp-Session-Id") != "":
		t.sessions.ServeHTTP(w, r)
	case r.Header.Get("Mcp-Protocol-Version") >= stateless || standsAlone(body):
		t.standalone.ServeHTTP(w, r)
	default:
		t.sessions.ServeHTTP(w, r)
	}
}

// standsAlone tells whether a message says in its _meta that it is of a
// revision without sessions.
func standsAlone(body []byte) bool {
	var message struct {
		Params struct {
			Meta struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		} `json:"params"`
	}
	return json.Unmarshal(body, &message) == nil && message.Params.Meta.Version >= stateless
}

// hostOf returns the host of a Host header, without its port.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return header
}

// isLoopback tells whether host names this machine only.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
