package upstream

import (
	"context"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// skipped logs what a server sent that is not MCP: the first piece as a warning,
// the rest, which may be endless, for debugging only.
type skipped struct {
	log      *slog.Logger
	serverID string

	mu    sync.Mutex
	first string
}

func (s *skipped) note(text string) {
	s.mu.Lock()
	isFirst := s.first == ""
	if isFirst {
		s.first = text
	}
	s.mu.Unlock()
	attrs := []any{slog.String(telemetry.KeyServer, s.serverID), slog.String("text", text)}
	if isFirst {
		s.log.WarnContext(context.Background(), "upstream output is not MCP, skipped", attrs...)
		return
	}
	s.log.DebugContext(context.Background(), "upstream output is not MCP, skipped", attrs...)
}

// firstText returns the first piece, empty when there was none.
func (s *skipped) firstText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}
