package code

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/broker"
)

// maxQueued is how many notices of servers wait for a slow host. More are dropped.
const maxQueued = 100

// notices are what servers send during one request of a host. Log messages reach the host as they are. Progress does if
// the request is one call of a server; that of the calls of a program is part of the program's.
type notices struct {
	session *mcp.ServerSession
	token   any // nil: the host wants no progress
	direct  bool
	queue   chan broker.Notice
	sending sync.WaitGroup

	mu     sync.Mutex
	last   float64 // the last progress
	latest string  // of the calls of a program
}

// listen has a run pass on what servers send. The caller must call end when the run is over.
func (s *Server) listen(ctx context.Context, req mcp.Request, r *orchestrator.Request) (n *notices, end func()) {
	n = &notices{direct: r.Call != nil, queue: make(chan broker.Notice, maxQueued)}
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || r.Background {
		return n, func() {}
	}
	n.session = session
	if params, ok := req.GetParams().(interface{ GetProgressToken() any }); ok {
		n.token = params.GetProgressToken()
	}
	level := s.logLevel(session, req)
	if n.token == nil && level == "" {
		return n, func() {}
	}
	over := make(chan struct{})
	r.Notices = &broker.Notices{Level: level, On: func(notice broker.Notice) {
		select {
		case n.queue <- notice:
		default:
		}
	}}
	n.sending.Go(func() { n.send(ctx, over) })
	return n, func() {
		close(over)
		n.sending.Wait()
	}
}

// send sends notices until the run is over and the queue is empty.
func (n *notices) send(ctx context.Context, over <-chan struct{}) {
	for {
		select {
		case notice := <-n.queue:
			n.pass(ctx, notice)
			continue
		default:
		}
		select {
		case notice := <-n.queue:
			n.pass(ctx, notice)
		case <-over:
			if len(n.queue) == 0 {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// pass sends one notice. An error means that the host is gone.
func (n *notices) pass(ctx context.Context, notice broker.Notice) {
	switch {
	case notice.Log != nil:
		//lint:ignore SA1019 hosts of these revisions want it
		_ = n.session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(notice.Log.Level),
			Logger: strings.TrimSuffix(notice.ServerID+"/"+notice.Log.Logger, "/"), Data: notice.Log.Data})
	case n.token == nil:
	case n.direct:
		_ = n.progress(ctx, notice.Progress, notice.Total, notice.Message)
	default:
		text := fmt.Sprintf("%s/%s: %v", notice.ServerID, notice.Tool, notice.Progress)
		if notice.Total > 0 {
			text += fmt.Sprintf(" of %v", notice.Total)
		}
		if notice.Message != "" {
			text += ", " + notice.Message
		}
		n.mu.Lock()
		n.latest = text
		n.mu.Unlock()
	}
}

// progress sends progress to the host. It never decreases (MCP 2025-11-25, Progress).
func (n *notices) progress(ctx context.Context, value, total float64, message string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if value <= n.last {
		value = n.last + 1e-6
	}
	n.last = value
	return n.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: n.token, Progress: value,
		Total: total, Message: message})
}

// ofCalls returns the latest progress of the calls of a program.
func (n *notices) ofCalls() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.latest
}

// logLevels are the levels that hosts have set for their sessions (revisions before 2026-07-28).
type logLevels struct {
	mu  sync.Mutex
	set map[*mcp.ServerSession]string
}

// keepLogLevel remembers the log level of a session.
func (s *Server) keepLogLevel(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		//lint:ignore SA1019 hosts of these revisions set it
		params, ok := req.GetParams().(*mcp.SetLoggingLevelParams)
		session, isServer := req.GetSession().(*mcp.ServerSession)
		if err != nil || !ok || !isServer {
			return res, err
		}
		s.levels.mu.Lock()
		defer s.levels.mu.Unlock()
		open := map[*mcp.ServerSession]string{session: string(params.Level)}
		for other := range s.mcp.Sessions() {
			if level, has := s.levels.set[other]; has && other != session {
				open[other] = level
			}
		}
		s.levels.set = open
		return res, nil
	}
}

// logLevel returns the level from which on a host wants log messages, or "".
func (s *Server) logLevel(session *mcp.ServerSession, req mcp.Request) string {
	if params := req.GetParams(); params != nil {
		//lint:ignore SA1019 hosts of this revision may still ask for it
		if level, ok := params.GetMeta()[mcp.MetaKeyLogLevel].(string); ok {
			return level
		}
	}
	s.levels.mu.Lock()
	defer s.levels.mu.Unlock()
	return s.levels.set[session]
}
