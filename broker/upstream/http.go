package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxErrorBody is how much of an HTTP answer that is no success is read, in bytes.
const maxErrorBody = 64 << 10

const maxRedirects = 5

// httpLink is the connection to a server over streamable HTTP (MCP 2025-11-25
// and 2026-07-28, Transports). The SDK speaks the protocol; httpLink is its
// http.RoundTripper, adds the configured headers, bounds what comes back and
// lets the tap see it. (The SDK's connection cannot be wrapped instead: it
// learns of the handshake by a method that it does not export.)
type httpLink struct {
	mcp.StreamableClientTransport
	config Config
	origin *url.URL
	tap    *tap
	base   *http.Transport

	skipped skipped // answers and events that are no JSON-RPC

	mu     sync.Mutex
	status int // of the last answer that was no success; 0 after none
}

var (
	_ link              = (*httpLink)(nil)
	_ http.RoundTripper = (*httpLink)(nil)
)

// newHTTPLink takes a checked configuration.
func newHTTPLink(c Config, t *tap, log *slog.Logger) *httpLink {
	origin, err := url.Parse(c.URL)
	if err != nil {
		panic("upstream: a URL that New has checked does not parse")
	}
	l := &httpLink{config: c, origin: origin, tap: t, base: newTransport(), skipped: skipped{log: log, serverID: c.ID}}
	l.StreamableClientTransport = mcp.StreamableClientTransport{
		Endpoint:     c.URL,
		HTTPClient:   &http.Client{Transport: l, CheckRedirect: l.sameOrigin},
		MaxEventSize: -1, // events are bounded here
	}
	return l
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// sameOrigin follows a redirect only within the configured origin: elsewhere
// the credentials would go to a stranger.
func (l *httpLink) sameOrigin(request *http.Request, via []*http.Request) error {
	if !l.isOrigin(request.URL) || len(via) >= maxRedirects {
		return &redirectError{to: plainURL(request.URL.String())}
	}
	return nil
}

// redirectError is a redirect that is not followed.
type redirectError struct{ to string }

// Error names the target.
func (e *redirectError) Error() string { return "redirected to " + e.to }

func (l *httpLink) isOrigin(u *url.URL) bool {
	return u.Scheme == l.origin.Scheme && u.Host == l.origin.Host
}

// RoundTrip implements http.RoundTripper.
func (l *httpLink) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	request = request.Clone(ctx)
	if l.isOrigin(request.URL) {
		for name, value := range l.config.Headers {
			request.Header.Set(name, value)
		}
	}
	sent := postedMessage(request)
	call := callID(sent)
	l.tap.outgoing(ctx, sent)
	defer l.tap.written(sent)
	response, err := l.base.RoundTrip(request)
	var dial *net.OpError
	if err == nil || !errors.As(err, &dial) || dial.Op != "dial" {
		exchangeOf(ctx).note(func(a *answer) { a.sent = true })
	}
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode >= 400:
		return l.failed(ctx, call, response)
	case response.StatusCode >= 300: // the client follows, or sameOrigin says why not
		return response, nil
	}
	return l.succeeded(call, response)
}

// postedMessage returns the message in a POST, nil where there is none.
func postedMessage(request *http.Request) jsonrpc.Message {
	if request.Method != http.MethodPost || request.GetBody == nil {
		return nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil
	}
	return m
}

// callID returns the ID of a request, one that is not valid for all else.
func callID(m jsonrpc.Message) jsonrpc.ID {
	if request, ok := m.(*jsonrpc.Request); ok {
		return request.ID
	}
	return jsonrpc.ID{}
}

// failed notes an answer that is no success, with the JSON-RPC error that may
// be in it, and cuts its body.
func (l *httpLink) failed(ctx context.Context, call jsonrpc.ID, response *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.status = response.StatusCode
	l.mu.Unlock()
	exchangeOf(ctx).note(func(a *answer) { a.status = response.StatusCode })
	if message, err := decodeMessage(body); err == nil {
		if answer, ok := message.(*jsonrpc.Response); ok && answer.ID == call {
			l.tap.incoming(message)
		}
	}
	setBody(response, body)
	return response, nil
}

// succeeded shows the tap what is in an answer, and gives the SDK what the tap
// makes of it. What is neither JSON nor events would end the SDK's session; it
// becomes an error of the one call.
func (l *httpLink) succeeded(call jsonrpc.ID, response *http.Response) (*http.Response, error) {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if kind == "text/event-stream" {
		response.Body = newEventFilter(response.Body, call, l.tap, &l.skipped)
		response.ContentLength = -1
		response.Header.Del("Content-Length")
		return response, nil
	}
	if !call.IsValid() {
		return response, nil // an answer to a notification says nothing
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMessage+1))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	if body, err = jsonrpc.EncodeMessage(l.received(call, body)); err != nil {
		return nil, err
	}
	setBody(response, body)
	response.Header.Set("Content-Type", "application/json")
	return response, nil
}

// received reads the body of an answer to a call.
func (l *httpLink) received(call jsonrpc.ID, body []byte) jsonrpc.Message {
	if len(body) > maxMessage {
		return l.tap.tooLarge(call)
	}
	message, err := decodeMessage(body)
	if err != nil {
		l.skipped.note(trimLine(body))
		return l.tap.garbled(call)
	}
	message, ok := l.tap.incoming(message)
	if !ok {
		l.skipped.note(tooManyRequests)
		return l.tap.garbled(call)
	}
	return message
}

func setBody(response *http.Response, body []byte) {
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Del("Content-Length")
}

// skipDiscovery implements link: the SDK waits for the answer of an HTTP request.
func (l *httpLink) skipDiscovery() bool { return false }

// gone implements link: HTTP has no connection that could be.
func (l *httpLink) gone() bool { return false }

// stop implements link.
func (l *httpLink) stop() { l.base.CloseIdleConnections() }

// validHeader reports whether HTTP allows a header (RFC 9110, sections 5.1 and 5.5).
func validHeader(name, value string) bool {
	isToken := func(c rune) bool {
		return c < 0x7F && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	}
	return name != "" && strings.IndexFunc(name, func(c rune) bool { return !isToken(c) }) < 0 && !strings.ContainsAny(value, "\r\n\x00")
}
