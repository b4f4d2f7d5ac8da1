package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/catalog"
)

// notices prints what a person should know about the servers.
func notices(stderr io.Writer) func(system.Notice) {
	return func(n system.Notice) {
		fmt.Fprintf(stderr, "airlock: %s\n", n.Text)
		if n.Hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", n.Hint)
		}
	}
}

func newLogger(stderr io.Writer, asJSON bool, least slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: least}
	if asJSON {
		return slog.New(slog.NewJSONHandler(stderr, opts))
	}
	return slog.New(slog.NewTextHandler(stderr, opts))
}

// open reads the configuration and opens the system. The caller closes it.
func (f configFlag) open(ctx context.Context, stderr io.Writer, opts system.Options) (*system.System, error) {
	c, err := f.load(stderr)
	if err != nil {
		return nil, err
	}
	opts.Version, opts.Notify = version, notices(stderr)
	return system.Open(ctx, c, opts)
}

// openTools reads the configuration, connects the servers only to see their
// tools, and disconnects them again.
func (f configFlag) openTools(ctx context.Context, stderr io.Writer) (*config.Config, *catalog.Snapshot, error) {
	c, err := f.load(stderr)
	if err != nil {
		return nil, nil, err
	}
	if len(c.Servers) == 0 {
		return nil, nil, &usageError{"no server is configured", "write airlock.yaml with a key mcpServers, or name a file with --config"}
	}
	servers, err := system.OpenCatalog(ctx, c, system.Options{
		Version: version, Logger: newLogger(stderr, false, slog.LevelWarn), Notify: notices(stderr),
	})
	if err != nil {
		return nil, nil, err
	}
	return c, servers.Snapshot(), servers.Close()
}

// listTools is openTools for verbs that need nothing of the configuration.
func listTools(ctx context.Context, flag configFlag, stderr io.Writer) (*catalog.Snapshot, error) {
	_, snapshot, err := flag.openTools(ctx, stderr)
	return snapshot, err
}
