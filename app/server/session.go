package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionID names the host's conversation in runs and records. What a transport
// calls the session is a credential there (whoever knows it may join), so only
// its digest goes on.
func (s *Server) sessionID(session *mcp.ServerSession) string {
	id := session.ID()
	if id == "" {
		return s.session
	}
	sum := sha256.Sum256([]byte(id))
	return "ses_" + hex.EncodeToString(sum[:16])
}

// follow tells the runs when a session that makes some is over. Those without
// an ID of their own share one, which is over when the server is: see Close.
func (s *Server) follow(session *mcp.ServerSession) {
	if session.ID() == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[session] {
		return
	}
	s.followed[session] = true
	s.watching.Go(func() {
		// Why the session ended does not matter here; Serve reports it.
		_ = session.Wait()
		s.runs.EndSession(s.sessionID(session))
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followed, session)
	})
}

// quiet hands the SDK's log on as debug output: it reports every session and
// every mistake of a client, which is nothing that a person must act on.
type quiet struct{ slog.Handler }

// Enabled tells whether debug output is wanted.
func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle writes the record as debug output.
func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, record)
}

// WithAttrs keeps the handler quiet.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup keeps the handler quiet.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
