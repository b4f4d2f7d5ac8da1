package upstream

import (
	"context"
	"slices"
)

// logLevels are MCP's levels of log messages, the least severe first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

const methodSetLevel = "logging/setLevel"

// wantLogs asks a server of a revision with sessions for log messages from a level on, if no earlier call of the
// session has asked for as much. Later revisions have the level in each request. A server that refuses sends what it
// likes.
func (s *session) wantLogs(ctx context.Context, relay Relay) {
	if relay == nil || relay.LogLevel() == "" || s.protocol() >= modernProtocol {
		return
	}
	declared := s.client.InitializeResult().Capabilities
	level := int64(len(logLevels) - slices.Index(logLevels, relay.LogLevel())) // higher is more
	//lint:ignore SA1019 servers of these revisions announce it
	if declared == nil || declared.Logging == nil || level > int64(len(logLevels)) || s.logs.Load() >= level {
		return
	}
	s.logs.Store(level)
	_ = s.ask(ctx, methodSetLevel, "level", relay.LogLevel()) // the call does not depend on it
}
