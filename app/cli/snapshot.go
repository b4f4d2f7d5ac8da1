package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"time"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Snapshot returns the newest tool definitions.
func (s *system) Snapshot() *catalog.Snapshot { return s.snapshot.Load() }

func (s *system) serverIDs() []string {
	var ids []string
	for _, server := range s.config.Servers {
		ids = append(ids, server.ID)
	}
	return ids
}

// connect connects all servers and keeps the snapshot of their tools new.
// Servers that do not answer are missing from it, with the reason.
func (s *system) connect(ctx context.Context, stderr io.Writer) error {
	if err := resolveSecrets(ctx, s.config); err != nil {
		return err
	}
	set, err := upstream.New(upstreamConfigs(s.config), &upstream.Options{
		// What goes wrong while they start is told below, once and in words.
		Logger: newLogger(stderr, false, slog.LevelError), Version: version, OnChange: func(string) { s.listAgain(ctx) },
	})
	if err != nil {
		return fmt.Errorf("preparing the servers: %w", err)
	}
	s.undo.Add(set.Close)
	s.upstreams = set
	set.Connect(ctx)
	s.listing.Lock()
	defer s.listing.Unlock()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	s.tellMissing(stderr)
	tellChanged(stderr, s.changed)
	return ctx.Err()
}

// tellMissing says which servers are missing and what can be done about it.
func (s *system) tellMissing(stderr io.Writer) {
	commands := map[string]string{}
	for _, server := range s.config.Servers {
		commands[server.ID] = server.Command
	}
	for _, server := range s.Snapshot().Servers() {
		if server.Problem == "" {
			continue
		}
		fmt.Fprintf(stderr, "airlock: the server %q is missing: %s\n", server.ID, server.Problem)
		fmt.Fprintf(stderr, "hint: %s\n", missingHint(server.ID, commands[server.ID]))
	}
}

// missingHint says what to try for a server that is missing.
func missingHint(id, command string) string {
	if command == "" {
		return fmt.Sprintf("check mcpServers.%s.url and its headers", id)
	}
	if _, err := exec.LookPath(command); err != nil {
		return installHint(command)
	}
	return fmt.Sprintf("run the command of mcpServers.%s by hand to see what it says; startTimeout gives a slow one more time", id)
}

// refresh makes a new snapshot of what the servers now offer, without the tools
// that changed behind the operator's back. The caller holds listing.
func (s *system) refresh(ctx context.Context) error {
	book, err := openPins(s.config)
	if err != nil {
		return err
	}
	servers := s.upstreams.Servers()
	report, err := book.Check(ctx, servers, time.Now())
	if err != nil {
		return fmt.Errorf("comparing the tools with those seen before: %w", err)
	}
	snapshot, err := catalog.NewSnapshot(withhold(servers, report.Changed))
	if err != nil {
		return err
	}
	s.changed = report.Changed
	s.snapshot.Store(snapshot)
	return nil
}

// listAgain is refresh for a server that changed its list later. Where that
// fails the last good snapshot stays.
func (s *system) listAgain(ctx context.Context) {
	s.listing.Lock()
	defer s.listing.Unlock()
	if err := s.refresh(ctx); err != nil {
		s.logger.ErrorContext(ctx, "the tools of the servers make no snapshot", slog.Any(telemetry.KeyError, err))
		return
	}
	s.warmAgain(ctx)
	for _, c := range s.changed {
		s.logger.WarnContext(ctx, "a tool changed its definition and is withheld",
			slog.String(telemetry.KeyServer, c.ServerID), slog.String(telemetry.KeyTool, c.ToolName))
	}
}

// takeAccepted puts tools into use that were withheld and that an operator has
// accepted since.
func (s *system) takeAccepted(ctx context.Context) {
	s.listing.Lock()
	defer s.listing.Unlock()
	if len(s.changed) == 0 {
		return
	}
	before := s.Snapshot()
	if err := s.refresh(ctx); err != nil {
		s.logger.ErrorContext(ctx, "the tools that were accepted cannot be put into use", slog.Any(telemetry.KeyError, err))
		return
	}
	if s.Snapshot().Digest() == before.Digest() {
		s.snapshot.Store(before) // it has its index already
		return
	}
	s.warmAgain(ctx)
}

// warmAgain keeps sandboxes ready for the tools of now.
func (s *system) warmAgain(ctx context.Context) {
	if s.orchestrator == nil {
		return
	}
	if err := s.orchestrator.Warm(ctx); err != nil {
		s.logger.WarnContext(ctx, "no sandboxes are kept ready for the changed tools", slog.Any(telemetry.KeyError, err))
	}
}

// listTools connects the servers only to see their tools.
func listTools(ctx context.Context, flag configFlag, stderr io.Writer) (*catalog.Snapshot, error) {
	c, err := flag.load(stderr)
	if err != nil {
		return nil, err
	}
	if len(c.Servers) == 0 {
		return nil, &usageError{"no server is configured", "write airlock.yaml with a key mcpServers, or name a file with --config"}
	}
	s := &system{config: c, logger: newLogger(stderr, false, slog.LevelWarn), undo: &cleanup.Stack{}}
	err = s.connect(ctx, stderr)
	return s.Snapshot(), errors.Join(err, s.Close())
}
