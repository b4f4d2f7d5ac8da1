package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sseLink is the connection to a server over the HTTP transport of MCP
// 2024-11-05: one stream of events brings all messages, each message to the
// server is a POST to the address that the first event names.
type sseLink struct {
	*httpWire
	transport mcp.SSEClientTransport

	mu      sync.Mutex
	hangUp  context.CancelFunc // ends the stream; nil before Connect
	stopped bool
}

var (
	_ link              = (*sseLink)(nil)
	_ http.RoundTripper = (*sseLink)(nil)
)

// newSSELink takes a checked configuration.
func newSSELink(c Config, t *tap, log *slog.Logger) *sseLink {
	l := &sseLink{httpWire: newHTTPWire(c, t, log)}
	// events are bounded here
	l.transport = mcp.SSEClientTransport{Endpoint: c.URL, HTTPClient: l.client(l), MaxEventSize: -1}
	return l
}

// Connect implements mcp.Transport. The stream outlives ctx, which bounds the
// connecting only.
func (l *sseLink) Connect(ctx context.Context) (mcp.Connection, error) {
	stream, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	l.hangUp = hangUp
	if l.stopped {
		hangUp()
	}
	l.mu.Unlock()
	defer context.AfterFunc(ctx, hangUp)()
	return l.transport.Connect(stream)
}

// RoundTrip implements http.RoundTripper. The server chooses the path to which messages are
// posted, but not the origin: another origin would get the calls of this server's tools, and
// it could be a machine that only this host can reach.
func (l *sseLink) RoundTrip(request *http.Request) (*http.Response, error) {
	if !l.isOrigin(request.URL) {
		return nil, &redirectError{to: plainURL(request.URL.String())}
	}
	response, call, err := l.send(request)
	if err != nil || response.StatusCode >= 300 || request.Method == http.MethodPost { // answers come as events
		return response, err
	}
	if !isEventStream(response) {
		response.Body.Close()
		return nil, errors.New("the answer is not a stream of events")
	}
	events := newEventFilter(response.Body, call, l.tap, &l.skipped)
	events.old, events.over = true, response.Request.Context().Done()
	response.Body = events
	return response, nil
}

// stop implements link.
func (l *sseLink) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.hangUp != nil {
		l.hangUp()
	}
	l.httpWire.stop()
}
