package upstreams

import (
	"context"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// AskServer asks one server for its tools, connecting to it if necessary, and updates the snapshot.
// It returns an error if the server does not answer, or if the caller may not change it.
func (s *Servers) AskServer(ctx context.Context, who caller.Caller, serverID string) error {
	if !s.MayChange(who, serverID) {
		return NoSuchServer(&config.Config{}, serverID)
	}
	return s.catalog.refreshOne(ctx, serverID)
}

// RestartServer ends the connection to a server and opens another one. Calls in flight are finished
// first.
func (s *Servers) RestartServer(ctx context.Context, who caller.Caller, serverID string) error {
	if !s.MayChange(who, serverID) {
		return NoSuchServer(&config.Config{}, serverID)
	}
	if _, found := s.configured(serverID); !found || s.catalog.upstreams == nil {
		return NoSuchServer(s.opts.Config(), serverID)
	}
	if err := s.opts.Log.Append(ctx, audit.Record{Kind: audit.KindOperator, Identity: audit.IdentityOf(who),
		Act: audit.Act{ServerID: serverID}, Detail: "server restarted"}); err != nil {
		return err
	}
	if s.callers != nil {
		s.callers.Forget(serverID)
	}
	return s.catalog.upstreams.Restart(ctx, serverID)
}

// ServerLog returns the first and the last lines that the newest process of a server has written to
// stderr, without credentials, to a caller who may change the server.
func (s *Servers) ServerLog(who caller.Caller, serverID string) ([]string, error) {
	if !s.MayChange(who, serverID) {
		return nil, NoSuchServer(&config.Config{}, serverID)
	}
	if _, found := s.configured(serverID); !found || s.catalog.upstreams == nil {
		return nil, NoSuchServer(s.opts.Config(), serverID)
	}
	lines, err := s.catalog.upstreams.Log(serverID)
	for i := range lines {
		lines[i] = s.catalog.opts.Redactors.All.Text(lines[i])
	}
	return lines, err
}
