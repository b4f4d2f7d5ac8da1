package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/share"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
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
		end: t.end, endSilent: t.endSession, callers: t.callers, naming: t.naming, opened: newOpened(),
		room: semaphore.NewWeighted(largeRoom), rooms: share.New(largeRoom / 4),
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
		if !IsLoopback(host) && !slices.ContainsFunc(hosts, func(own string) bool { return strings.EqualFold(own, host) }) {
			problem.Write(w, http.StatusForbidden, "foreign_host", "the host of the request is not this machine")
			return
		}
		// Check accepts every GET, and requests without the headers of a browser.
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host && !slices.Contains(origins, origin) {
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
	end                  func(sessionID string)
	endSilent            func(sessionID, protocolID string)
	opened               *opened
	room                 *semaphore.Weighted // bytes of large messages that are being read
	rooms                *share.Shares       // the share of one account of these bytes
}

// Limits of the messages that are being read, in bytes. Messages up to smallMessage are not limited.
const (
	smallMessage = 64 << 10
	largeRoom    = 16 * MaxMessage
)

// The limits in the metric of refused requests.
const (
	limitLarge    = "large"    // large messages that are being read
	limitSessions = "sessions" // open sessions
)

var (
	errBusy     = errors.New("too many large messages are being read: send it again")
	errOwnLarge = errors.New("as many of your large messages are being read as may be at one time: wait for one of them")
)

// read reads the message of a request. Large messages count towards the limits until done is
// called.
func (t *router) read(w http.ResponseWriter, r *http.Request) (body []byte, done func(), err error) {
	size := r.ContentLength
	if size < 0 || size > MaxMessage {
		size = MaxMessage
	}
	if size <= smallMessage {
		size = 0
	}
	release, ok := t.rooms.Take(conversationOf(r).account, size)
	if !ok {
		return nil, func() {}, errOwnLarge
	}
	if !t.room.TryAcquire(size) {
		release()
		return nil, func() {}, errBusy
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	return body, sync.OnceFunc(func() { t.room.Release(size); release() }), err
}

// ServeHTTP passes the request to the handler of its era.
func (t *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inForm := &plainRefusal{ResponseWriter: w}
	defer inForm.release()
	w = inForm
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		defer t.opened.uses(conversationOf(r))()
	}
	if r.Method == http.MethodDelete {
		// The SDK waits for the requests of a session that it ends, and these wait for their runs.
		t.end(t.callers.ofSession(r))
		defer t.opened.ended(conversationOf(r))
	}
	if r.Method != http.MethodPost {
		t.sessions.ServeHTTP(w, r)
		return
	}
	body, done, err := t.read(w, r)
	defer done()
	if err != nil {
		refuseUnread(w, r, err)
		return
	}
	if t.naming {
		body = named(body)
		r.ContentLength = int64(len(body))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, forHost := unreadable(body)
	switch {
	case forHost:
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer) // an error means that the client has disconnected
	case refuseMisshapen(w, body):
	case r.Header.Get("Mcp-Session-Id") != "":
		t.sessions.ServeHTTP(w, r)
	case r.Header.Get("Mcp-Protocol-Version") >= Stateless || standsAlone(body):
		t.standalone.ServeHTTP(w, r)
	default:
		t.begin(w, r)
	}
}

// refuseUnread answers a request whose message could not be read.
func refuseUnread(w http.ResponseWriter, r *http.Request, err error) {
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, errBusy):
		telemetry.CountRefusedRequest(r.Context(), limitLarge)
		w.Header().Set("Retry-After", "1")
		problem.Write(w, http.StatusServiceUnavailable, "busy", err.Error())
	case errors.Is(err, errOwnLarge):
		telemetry.CountRefusedRequest(r.Context(), limitLarge)
		w.Header().Set("Retry-After", "1")
		problem.Write(w, http.StatusTooManyRequests, "rate_limited", err.Error())
	case errors.As(err, &large):
		problem.Write(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the message has more than %d bytes", large.Limit))
	default:
		problem.Write(w, http.StatusBadRequest, "bad_request", "the body could not be read")
	}
}

// begin forwards a request that opens a session, if the limits permit it.
func (t *router) begin(w http.ResponseWriter, r *http.Request) {
	place, silent, answer := t.opened.reserve(conversationOf(r))
	if silent.id != "" {
		t.endSilent(t.callers.derive(silent.identity, sessionPrefix+silent.id), silent.id)
	}
	switch answer {
	case ownTaken:
		telemetry.CountRefusedRequest(r.Context(), limitSessions)
		w.Header().Set("Retry-After", "1")
		problem.Write(w, http.StatusTooManyRequests, "rate_limited", fmt.Sprintf("you have %d sessions, each with a request under way: end one of them", maxSessionsEach))
	case allTaken:
		telemetry.CountRefusedRequest(r.Context(), limitSessions)
		w.Header().Set("Retry-After", "60")
		problem.Write(w, http.StatusServiceUnavailable, "busy", "as many sessions are open as may be: try again later")
	case granted:
		defer place.over() // also if the handler panics
		t.sessions.ServeHTTP(&beginning{ResponseWriter: w, place: place}, r)
	}
}

// standsAlone reports whether the _meta of a message declares a revision without sessions.
func standsAlone(body []byte) bool {
	var message struct {
		Params struct {
			Meta struct {
				Version string `json:"io.modelcontextprotocol/protocolVersion"`
			} `json:"_meta"`
		} `json:"params"`
	}
	return strictjson.UnmarshalOpen(body, &message) == nil && message.Params.Meta.Version >= Stateless
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
	if host == "localhost" {
		return true
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
