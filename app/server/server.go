// Package server is the transport layer of Airlock's MCP faces: stdio and streamable HTTP in
// both eras of the protocol, the validation of messages, the identity of callers, and the
// cleanup at the end of a session. A face is a set of tools in a separate package below this
// one; it does not handle connections.
//
// It speaks the protocol's 2026-07-28 revision and, by negotiation, those from
// 2024-11-05 to 2025-11-25.
package server

import (
	"context"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Options are the options of New.
type Options struct {
	Principal  string          // the owner of a host on stdio; required
	Profile    string          // limits the servers and tools of a host on stdio; empty for all
	Local      Local           // returns the caller on stdio; nil means the principal
	Logger     *slog.Logger    // nil logs nothing
	Gate       Gate            // nil changes nothing
	EndSession func(id string) // ends the work of a session that has ended, and waits for it; nil does nothing
	// WhileKnown calls ended, once, when requests of a caller are not accepted any more. The
	// transport then ends the caller's requests and its session over HTTP. nil: callers are
	// accepted forever.
	WhileKnown func(ctx context.Context, who caller.Caller, ended func(error)) (stop func())
	// SessionKey is a secret from which the IDs of sessions are derived. Processes with the same key have the same ID
	// for the requests of a credential without a session of MCP. nil: a random key.
	SessionKey []byte
	// NameRequests enables RequestID.
	NameRequests bool
	// Tools are the names of the face's tools. Traces and metrics contain no other tool names.
	Tools []string
}

// Local returns the present caller of a host on stdio, without its session, or an error if the
// caller is not accepted any more. It is called for each request and must be safe for
// concurrent use.
type Local func(ctx context.Context) (caller.Caller, error)

// Transport serves one face to any number of concurrent hosts. A host cannot see, answer or
// cancel the requests of another host.
type Transport struct {
	face     *mcp.Server
	logger   *slog.Logger
	gate     Gate
	end      func(id string)
	naming   bool
	tools    []string
	callers  *callers
	sessions *sessions

	connected connections
}

// ErrUnknownCaller is the error of a request without a proven caller. The transports of this
// package refuse such requests.
var ErrUnknownCaller = errors.New("the request has no credential")

// New returns the transport of a face. The face must have added its own middleware before,
// because the transport checks and cleans the results of that middleware.
func New(face *mcp.Server, opts Options) (*Transport, error) {
	if face == nil || opts.Principal == "" {
		return nil, errors.New("a transport needs a face and a principal")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Gate == nil {
		opts.Gate = openGate{}
	}
	if opts.EndSession == nil {
		opts.EndSession = func(string) {}
	}
	t := &Transport{
		face: face, logger: opts.Logger, gate: opts.Gate, end: opts.EndSession, naming: opts.NameRequests,
		tools:   opts.Tools,
		callers: newCallers(opts), sessions: newSessions(opts.EndSession), connected: newConnections(),
	}
	if opts.WhileKnown != nil {
		face.AddReceivingMiddleware(t.whileKnown(opts.WhileKnown))
	}
	face.AddReceivingMiddleware(t.traced, t.cleanAnswers, negotiate, checkLogLevel, wellFormed)
	face.AddSendingMiddleware(t.cleanRequests)
	return t, nil
}

// Gate returns the gate for messages to hosts.
func (t *Transport) Gate() Gate { return t.gate }

// Caller returns the caller of a request. If it is not Known, the face must refuse the request
// with ErrUnknownCaller.
func (t *Transport) Caller(ctx context.Context, req mcp.Request) caller.Caller {
	who := t.callers.of(ctx, req)
	if host := announcedHost(req); host != "" {
		who.Host = host
	}
	return who
}

// Follow makes the transport call Options.EndSession when the session of the request ends. It
// must be called before work for the session begins. It may be called for each request.
func (t *Transport) Follow(req mcp.Request, who caller.Caller) { t.sessions.follow(req, who) }

// Attend calls begin once for each session, and the function that begin returned when the
// session has ended.
func (t *Transport) Attend(session *mcp.ServerSession, begin func() (end func())) {
	t.sessions.attend(session, begin)
}

// endSession ends a session over HTTP. It ends the work of the session first, because the SDK
// waits for the requests of a session that it ends.
func (t *Transport) endSession(sessionID, protocolID string) {
	t.end(sessionID)
	t.sessions.unbind(sessionID)
	if protocolID == "" { // of a revision without sessions
		return
	}
	for session := range t.face.Sessions() {
		if session.ID() == protocolID {
			// An error is ignored: the client cannot receive it any more.
			_ = session.Close()
		}
	}
}

// Close ends all sessions. The caller must first wait until no request is served any more. It may
// be called twice.
func (t *Transport) Close() { t.sessions.close() }

// SDKLogger returns the logger for the SDK's server of a face. It logs at level Debug, because
// nobody has to act on the SDK's messages. If logger is nil, it discards them.
func SDKLogger(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(quiet{logger.Handler()})
}
