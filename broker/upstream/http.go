package upstream

import (
	"bytes"
	"errors"
	"html"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/reach"
)

// maxErrorBody bounds the body of an HTTP error response, in bytes.
const maxErrorBody = 64 << 10

const maxRedirects = 5

// httpWire is what both HTTP transports of MCP have in common: it sends the
// SDK's requests with the configured headers, shows the tap what is in them, and
// keeps what a failure was about.
type httpWire struct {
	config Config
	origin *url.URL
	signer Signer // nil if the server is not signed in to
	tap    *tap
	base   *reach.Transport

	skipped skipped // answers and events that are not JSON-RPC

	mu     sync.Mutex
	status int          // of the last error response; 0 if the last response was a success
	needed *SignInError // nil if the last response did not need one
	page   *string      // the title of a web page that came in the place of an answer; nil after none
}

// newHTTPWire takes a checked configuration.
func newHTTPWire(c Config, t *tap, log *slog.Logger) *httpWire {
	origin, err := url.Parse(c.URL)
	if err != nil {
		panic("upstream: a URL that New has checked does not parse")
	}
	w := &httpWire{config: c, origin: origin, tap: t, base: newTransport(c), skipped: skipped{log: log, serverID: c.ID}}
	if c.Credentials != nil {
		w.signer = c.Credentials.Bind()
	}
	return w
}

// client returns a client that sends through via.
func (w *httpWire) client(via http.RoundTripper) *http.Client {
	return &http.Client{Transport: via, CheckRedirect: w.sameOrigin}
}

// newTransport returns a transport to the host that the operator has configured.
func newTransport(c Config) *reach.Transport {
	dialer := reach.Configured()
	dialer.Met, dialer.Wrap = c.Met, checked
	return reach.NewTransport(dialer, func(t *http.Transport) { t.MaxResponseHeaderBytes = 256 << 10 })
}

// sameOrigin follows a redirect only within the configured origin: elsewhere
// the credentials would go to another server.
func (w *httpWire) sameOrigin(request *http.Request, via []*http.Request) error {
	if !w.isOrigin(request.URL) || len(via) >= maxRedirects {
		return &redirectError{to: plainURL(request.URL.String())}
	}
	return nil
}

// redirectError is a redirect that is not followed.
type redirectError struct{ to string }

// Error names the target.
func (e *redirectError) Error() string { return "redirected to " + e.to }

func (w *httpWire) isOrigin(u *url.URL) bool {
	return u.Scheme == w.origin.Scheme && u.Host == w.origin.Host
}

// send carries one request, and returns the ID of the call in it, or an invalid
// ID if it has no call.
func (w *httpWire) send(request *http.Request) (*http.Response, jsonrpc.ID, error) {
	ctx := request.Context()
	request = request.Clone(ctx)
	if w.isOrigin(request.URL) {
		for name, value := range w.config.Headers {
			request.Header.Set(name, value)
		}
	}
	if e := exchangeOf(ctx); e != nil && e.task != "" {
		request.Header.Set("Mcp-Name", headerValue(e.task))
	}
	sent := postedMessage(request)
	call := callID(sent)
	w.tap.outgoing(ctx, sent)
	defer w.tap.written(sent)
	response, err := w.signed(request)
	for tries := 0; closedIdle(err) && tries < maxClosed && request.GetBody != nil; tries++ {
		if request.Body, err = request.GetBody(); err == nil {
			response, err = w.signed(request)
		}
	}
	var dial *net.OpError
	if err == nil || !errors.As(err, &dial) || dial.Op != "dial" {
		exchangeOf(ctx).note(func(a *answer) { a.sent = true })
	}
	switch {
	case err != nil:
	case response.StatusCode >= 400:
		response, err = w.failed(request, call, response)
	case response.StatusCode < 300 && isPage(response):
		err = w.notePage(response)
	}
	return response, call, err
}

// maxClosed is how often a request is sent again that met a connection which the server
// had closed.
const maxClosed = 3

// closedIdle reports whether the server closed a connection while it was idle, so that
// nothing of the request was written. The error of net/http, which sends only idempotent
// requests again by itself then, has no name.
func closedIdle(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "http: server closed idle connection")
}

// postedMessage returns the message in a POST, or nil.
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

// failed records an error response and the JSON-RPC error that may
// be in it, and cuts its body.
func (w *httpWire) failed(request *http.Request, call jsonrpc.ID, response *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.status = response.StatusCode
	w.mu.Unlock()
	expired := isExpired(request, response.StatusCode, body)
	exchangeOf(request.Context()).note(func(a *answer) { a.status, a.expired = response.StatusCode, expired })
	if message, err := decodeMessage(body); err == nil {
		if answer, ok := message.(*jsonrpc.Response); ok && answer.ID == call {
			w.tap.incoming(message, call)
		}
	}
	setBody(response, body)
	return response, nil
}

// isPage reports whether an answer is for a browser.
func isPage(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && (kind == "text/html" || kind == "application/xhtml+xml")
}

// pageTitle finds the title of a page of HTML.
var pageTitle = lazyregexp.New(`(?is)<title[^>]*>(.*?)</title>`)

// notePage notes the title of a web page.
func (w *httpWire) notePage(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	response.Body.Close()
	if err != nil {
		return err
	}
	title := ""
	if found := pageTitle.FindSubmatch(body); found != nil {
		title = html.UnescapeString(string(found[1]))
	}
	w.mu.Lock()
	w.page = &title
	w.mu.Unlock()
	setBody(response, body)
	return nil
}

// sessionHeader names the session of a request (MCP 2025-11-25, Streamable HTTP).
const sessionHeader = "Mcp-Session-Id"

// isExpired reports whether a server refused a request because it does not know
// its session, as after a restart. The protocol demands 404; older servers made
// with the SDKs for TypeScript and Python answer 400 with a text.
func isExpired(request *http.Request, status int, body []byte) bool {
	if request.Header.Get(sessionHeader) == "" {
		return false
	}
	return status == http.StatusNotFound || status == http.StatusBadRequest &&
		bytes.Contains(bytes.ToLower(body), []byte("session"))
}

func setBody(response *http.Response, body []byte) {
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Del("Content-Length")
}

// skipDiscovery implements link: the SDK waits for the answer of an HTTP request.
func (w *httpWire) skipDiscovery() bool { return false }

// gone implements link. HTTP has no connection that the server could end, but a session belongs to the sign-in with
// which it was begun.
func (w *httpWire) gone() bool { return w.signer != nil && w.signer.Changed() }

// stop implements link.
func (w *httpWire) stop() { w.base.CloseIdleConnections() }

// validHeader reports whether HTTP allows a header (RFC 9110, sections 5.1 and 5.5).
func validHeader(name, value string) bool {
	isToken := func(c rune) bool {
		return c < 0x7F && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	}
	return name != "" && strings.IndexFunc(name, func(c rune) bool { return !isToken(c) }) < 0 &&
		!strings.ContainsAny(value, "\r\n\x00")
}
