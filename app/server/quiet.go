package server

import (
	"context"
	"log/slog"
)

// quiet logs the SDK's messages at level Debug. The SDK reports every session and every mistake
// of a client, on which nobody has to act.
type quiet struct{ slog.Handler }

// Enabled reports whether debug output is enabled.
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
