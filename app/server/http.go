package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// sessionTimeout is the idle timeout of an HTTP session.
const sessionTimeout = 30 * time.Minute

// Stateless is the first revision without sessions.
const Stateless = "2026-07-28"

// HTTPOptions are the options of Transport.Handler.
type HTTPOptions struct {
	Hosts   []string // accepted names in the Host header besides those of the loopback interface; without ports
	Origins []string // of web pages that may send requests, besides the pages of this server: https://app.example
	// Refuse answers a request if identify returns an error or an unknown caller. nil answers
	// with status 401.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	Nodes  Nodes // nil: there is one process
}

// Handler returns a handler of MCP over streamable HTTP, for one path such as /mcp. opts may be
// nil. It refuses requests
//
//   - whose Host header is not a name of this machine, by default of the loopback interface,
//   - that come from a foreign web page (MCP 2025-11-25, Transports, Security Warning),
//   - whose caller identify does not accept.
func (t *Transport) Handler(identify Identify, opts *HTTPOptions) http.Handler {
	if opts == nil {
		opts = &HTTPOptions{}
	}
	get := func(*http.Request) *mcp.Server { return t.face }
	logger := SDKLogger(t.logger)
	return Guard(opts.Hosts, opts.Origins, authenticated(identify, opts.Refuse, &router{
		end: t.end, endSilent: t.endSession, callers: t.callers, naming: t.naming, gate: t.gate,
		nodes:  opts.Nodes,
		opened: quota.NewTable[conversation, *atomic.Int64](quota.For(quota.Sessions)),
		large:  quota.New(quota.For(quota.LargeMessages)),
		sessions: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger:              logger,
			SessionTimeout:      sessionTimeout,
			MaxRequestBodyBytes: MaxMessage,
			// Guard checks the host. The SDK would refuse all names of a proxy on this machine.
			DisableLocalhostProtection: true,
			// A host that loses its connection during a long run can fetch the answer later.
			EventStore: mcp.NewMemoryEventStore(nil),
		}),
		standalone: mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Logger:                     logger,
			Stateless:                  true,
			MaxRequestBodyBytes:        MaxMessage,
			DisableLocalhostProtection: true,
			// Without a session, the answer cannot be fetched later.
			PropagateRequestCancellation: true,
		}),
	}))
}

// Guard refuses requests that a foreign web page could have caused, by DNS rebinding or across
// origins. hosts and origins are those of HTTPOptions. An invalid origin is ignored.
func Guard(hosts, origins []string, next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	for _, origin := range origins {
		_ = crossOrigin.AddTrustedOrigin(origin) // an invalid origin matches no request
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if !IsLoopback(host) && !slices.ContainsFunc(
			hosts, func(own string) bool { return strings.EqualFold(own, host) }) {
			problem.Write(w, http.StatusForbidden, "foreign_host", "the host of the request is not this machine")
			return
		}
		// Over HTTP/2, r.Host is the authority. A Host header that differs is malformed (RFC 9113, section
		// 8.3.1).
		if other := r.Header.Get("Host"); other != "" && !strings.EqualFold(other, r.Host) {
			problem.Write(w, http.StatusBadRequest, "foreign_host", "the request names two hosts")
			return
		}
		// Check accepts every GET, and requests without the headers of a browser.
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host &&
			origin != "https://"+r.Host && !slices.Contains(origins, origin) {
			problem.Write(w, http.StatusForbidden, "foreign_origin", "the origin of the request is another site")
			return
		}
		if err := crossOrigin.Check(r); err != nil {
			problem.Write(w, http.StatusForbidden, "foreign_origin", "the origin of the request is another site")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// router serves both eras of the protocol at one address. The SDK needs one handler for
// revisions with sessions and another one for revisions without.
type router struct {
	sessions, standalone http.Handler
	callers              *callers
	naming               bool // add the request ID to calls
	nodes                Nodes
	gate                 Gate
	end                  func(sessionID string)
	endSilent            func(sessionID, protocolID string)
	// opened are the open sessions by the account of the caller that opened them. Clients often
	// leave a session without ending it.
	opened  *quota.Table[conversation, *atomic.Int64] // the number of POST requests in progress
	large   *quota.Limiter                            // of bytes of large messages that are being read
	opening atomic.Int64                              // the number of sessions that have begun to open
}

// smallMessage is the maximum size of a message in bytes that the limit of large messages ignores.
const smallMessage = 64 << 10

// conversation identifies a protocol session: its ID and the identity that owns it.
type conversation struct {
	account  string // that the session is counted for
	identity string
	id       string
}

// maxRefused is the size in bytes up to which a message that is too large is read, for its ID. Some clients read no
// answer before they have sent the whole message.
const maxRefused = 4 * MaxMessage

// tooLarge is the error about a message with more than MaxMessage bytes.
type tooLarge struct{ answer []byte }

// Error returns the reason.
func (*tooLarge) Error() string { return fmt.Sprintf("the message has more than %d bytes", MaxMessage) }

// read reads the message of a request. Large messages count towards the limits until done is
// called.
func (t *router) read(r *http.Request) (body []byte, done func(), err error) {
	size := r.ContentLength
	if size < 0 || size > MaxMessage {
		size = MaxMessage
	}
	if size <= smallMessage {
		size = 0
	}
	unit, err := t.large.Take(conversationOf(r).account, size)
	if err != nil {
		return nil, func() {}, err
	}
	body, err = io.ReadAll(io.LimitReader(r.Body, MaxMessage+1))
	if err == nil && len(body) > MaxMessage {
		var o Outline
		o.Write(body)
		// An error means that the ID is not known.
		_, _ = io.CopyN(&o, r.Body, maxRefused-MaxMessage)
		refused := &tooLarge{}
		refused.answer = o.Refusal(refused.Error())
		body, err = nil, refused
	}
	return body, unit.Release, err
}

// ServeHTTP passes the request to the handler of its era.
func (t *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inForm := &plainRefusal{ResponseWriter: w, gate: t.gate}
	defer inForm.release()
	w = inForm
	var waiting int64 // requests of the session that wait for answers, this one included
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		if t.forwardSession(w, r, id) {
			return
		}
		count, done, known := t.opened.Use(conversationOf(r))
		defer done()
		if known && r.Method == http.MethodPost {
			waiting = count.Add(1)
			defer count.Add(-1)
		}
	}
	if r.Method == http.MethodDelete {
		// The SDK waits for the requests of a session that it ends, and these wait for their runs.
		t.end(t.callers.ofSession(r))
		defer t.opened.Remove(conversationOf(r))
	}
	if r.Method != http.MethodPost {
		t.sessions.ServeHTTP(w, r)
		return
	}
	body, done, err := t.read(r)
	defer done()
	if err != nil {
		refuseUnread(w, r, err)
		return
	}
	inForm.message = body
	answer, forHost := unreadable(body)
	switch {
	case forHost:
	case answer != nil:
		body = answer
	case !json.Valid(body):
		// The SDK checks the headers before it refuses this. It would accept more after the end of the message.
		body = []byte("{}")
	case t.naming:
		body = named(body)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	var about subject
	if t.nodes != nil {
		about = subjectOf(body)
	}
	switch {
	case forHost:
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer) // an error means that the client has disconnected
	case refuseMisshapen(w, body):
	case t.forwardMessage(w, r, body, about):
	case t.isMoving(about, waiting):
		http.Error(w, strings.TrimSpace(sdkUnknownSession), http.StatusNotFound)
	case r.Header.Get("Mcp-Session-Id") != "":
		t.sessions.ServeHTTP(w, r)
	case r.Header.Get("Mcp-Protocol-Version") >= Stateless || isSessionless(body):
		t.standalone.ServeHTTP(w, r)
	default:
		t.begin(w, r)
	}
}

// refuseUnread answers a request whose message could not be read.
func refuseUnread(w http.ResponseWriter, r *http.Request, err error) {
	var large *tooLarge
	var refused *quota.Refusal
	switch {
	case errors.As(err, &refused):
		problem.Refuse(w, r, refused)
	case errors.As(err, &large):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		w.Write(large.answer) // an error means that the client has disconnected
	default:
		problem.Write(w, http.StatusBadRequest, "bad_request", "the body could not be read")
	}
}

// begin forwards a request that opens a session, if the limits permit it. The session is counted
// before it has an ID.
func (t *router) begin(w http.ResponseWriter, r *http.Request) {
	c := conversationOf(r)
	c.id = "\x00" + strconv.FormatInt(t.opening.Add(1), 10) // differs from all session IDs, which are visible ASCII
	done, ended, err := t.opened.Add(c.account, c, &atomic.Int64{})
	defer done()
	for _, silent := range ended {
		t.endSilent(t.callers.derive(silent.Key.identity, sessionPrefix+silent.Key.id), silent.Key.id)
	}
	if refused := (*quota.Refusal)(nil); errors.As(err, &refused) {
		problem.Refuse(w, r, refused)
		return
	}
	defer t.opened.Remove(c) // it has another key if it has begun
	t.sessions.ServeHTTP(&sessionWriter{ResponseWriter: w, begins: func(id string) {
		begun := c
		begun.id = id
		t.opened.Rename(c, begun)
	}}, r)
}

// isSessionless reports whether the _meta of a message declares a revision without sessions.
func isSessionless(body []byte) bool {
	var message struct {
		Params json.RawMessage `json:"params"`
	}
	return strictjson.UnmarshalOpen(body, &message) == nil && areSessionless(message.Params)
}

// areSessionless is isSessionless for the params of a message.
func areSessionless(raw []byte) bool {
	var params struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	return strictjson.UnmarshalOpen(raw, &params) == nil && params.Meta.Version >= Stateless
}

// hostOf returns the host of a Host header, without its port.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return header
}

// IsLoopback reports whether host names this machine only.
func IsLoopback(host string) bool {
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	return reach.IsLoopback(host)
}
