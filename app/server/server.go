// Package server is the transport layer of Airlock's MCP faces: stdio and
// streamable HTTP in both eras of the protocol, the shape of messages, who calls,
// and what ends with a session. A face is a set of tools in a package of its own
// below this one; it knows nothing of connections.
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

// Options say who is served, and how.
type Options struct {
	Principal  string          // whom a host on stdio belongs to; needed
	Profile    string          // which servers and tools a host on stdio sees; empty for all
	Local      Local           // who a host on stdio is, where it is not the principal
	Logger     *slog.Logger    // nil logs nothing
	Gate       Gate            // nil lets everything through
	EndSession func(id string) // ends what belongs to a session that is over, and waits for it; nil does nothing
	// WhileKnown calls ended, once, when requests of a caller are not accepted any more: its
	// requests and its session over HTTP end then. nil: none does.
	WhileKnown func(ctx context.Context, who caller.Caller, ended func(error)) (stop func())
	// NameRequests has RequestID tell the ID of the request that a call is.
	NameRequests bool
	// Tools are the names of the face's tools, for traces and metrics: another name
	// that a host calls is not one of them.
	Tools []string
}

// Local says who the host on stdio is that makes a request now, without its session, or
// why that is not known any more. It is called for each request, maybe concurrently.
type Local func(ctx context.Context) (caller.Caller, error)

// Transport serves one face to any number of hosts at one time. No host sees,
// answers, cancels or outlasts what belongs to another.
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

// ErrUnknownCaller is the error of a request whose transport proves nothing. The
// transports of this package let none through.
var ErrUnknownCaller = errors.New("the request does not say who makes it")

// New returns the transport of a face. The face's own middleware was added before:
// what it returns is checked and cleaned here.
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
		face: face, logger: opts.Logger, gate: opts.Gate, end: opts.EndSession, naming: opts.NameRequests, tools: opts.Tools,
		callers: newCallers(opts), sessions: newSessions(opts.EndSession), connected: newConnections(),
	}
	if opts.WhileKnown != nil {
		face.AddReceivingMiddleware(t.whileKnown(opts.WhileKnown))
	}
	face.AddReceivingMiddleware(t.traced, checkLogLevel, wellFormed, t.cleanAnswers)
	face.AddSendingMiddleware(t.cleanRequests)
	return t, nil
}

// Gate cleans what leaves for hosts.
func (t *Transport) Gate() Gate { return t.gate }

// Caller returns who makes a request of the face. One that is not Known is refused
// with ErrUnknownCaller.
func (t *Transport) Caller(ctx context.Context, req mcp.Request) caller.Caller {
	return t.callers.of(ctx, req)
}

// Follow ends the session of a caller, who has just begun something that belongs to
// it, when it is over. Calling it for each request is fine.
func (t *Transport) Follow(req mcp.Request, who caller.Caller) { t.sessions.follow(req, who) }

// Attend calls begin, unless it did so before for the session, and what begin
// returned when the session has ended.
func (t *Transport) Attend(session *mcp.ServerSession, begin func() (end func())) {
	t.sessions.attend(session, begin)
}

// endSession ends a session over HTTP, first what belongs to it: the SDK waits for the
// requests of a session that it ends.
func (t *Transport) endSession(sessionID, protocolID string) {
	t.end(sessionID)
	t.sessions.unbind(sessionID)
	if protocolID == "" { // of a revision without sessions
		return
	}
	for session := range t.face.Sessions() {
		if session.ID() == protocolID {
			// Its client is not there to be told that this did not end well.
			_ = session.Close()
		}
	}
}

// Close ends all sessions. Call it when no request is served any more; calling it
// twice is fine.
func (t *Transport) Close() { t.sessions.close() }

// SDKLogger is the logger for the SDK's server of a face: what the SDK reports is
// nothing that a person must act on, so it is debug output. nil logs nothing.
func SDKLogger(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(quiet{logger.Handler()})
}
