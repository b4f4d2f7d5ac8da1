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
