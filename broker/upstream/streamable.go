package upstream

import (
	"log/slog"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpLink is the connection to a server over streamable HTTP (MCP 2025-11-25
// and 2026-07-28, Transports). The SDK speaks the protocol; httpLink is its
// http.RoundTripper, bounds what comes back and lets the tap see it. (The SDK's
// connection cannot be wrapped instead: it learns of the handshake by a method
// that it does not export.)
type httpLink struct {
	mcp.StreamableClientTransport
	*httpWire
}

var (
	_ link              = (*httpLink)(nil)
	_ http.RoundTripper = (*httpLink)(nil)
)

// newHTTPLink takes a checked configuration.
func newHTTPLink(c Config, t *tap, log *slog.Logger) *httpLink {
	l := &httpLink{httpWire: newHTTPWire(c, t, log)}
	l.StreamableClientTransport = mcp.StreamableClientTransport{
		Endpoint:     c.URL,
		HTTPClient:   l.client(l),
		MaxEventSize: -1, // events are bounded here
	}
	return l
}

// RoundTrip implements http.RoundTripper.
func (l *httpLink) RoundTrip(request *http.Request) (*http.Response, error) {
	response, call, err := l.send(request)
	if err != nil || response.StatusCode >= 300 { // the client follows a redirect, or sameOrigin returns an error
		return response, err
	}
	return l.succeeded(call, response)
}

// succeeded passes the content of an answer through the tap to the SDK. Content that is
// neither JSON nor events would end the SDK's session; it becomes an error of the call.
func (l *httpLink) succeeded(call jsonrpc.ID, response *http.Response) (*http.Response, error) {
	if isEventStream(response) {
		events := newEventFilter(response.Body, call, l.tap, &l.skipped)
		events.over = response.Request.Context().Done()
		response.Body = events
		response.ContentLength = -1
		response.Header.Del("Content-Length")
		return response, nil
	}
	if !call.IsValid() {
		return response, nil // an answer to a notification is empty
	}
	body, large, err := l.tap.readLarge(response)
	defer large.end()
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	if body, err = jsonrpc.EncodeMessage(l.received(call, body, large.most())); err != nil {
		return nil, err
	}
	setBody(response, body)
	response.Header.Set("Content-Type", "application/json")
	return response, nil
}

func isEventStream(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// received reads the body of an answer to a call.
func (l *httpLink) received(call jsonrpc.ID, body []byte, most int) jsonrpc.Message {
	if len(body) > most {
		return l.tap.tooLarge(call)
	}
	message, err := decodeMessage(body)
	if err != nil {
		l.skipped.note(trimLine(body))
		if isDeep(body) {
			return l.tap.tooDeep(call)
		}
		return l.tap.garbled(call)
	}
	message, ok := l.tap.incoming(message, call)
	if !ok {
		l.skipped.note(tooManyRequests)
		return l.tap.garbled(call)
	}
	if message == nil {
		return l.tap.garbled(call) // a notification instead of the answer
	}
	return message
}
