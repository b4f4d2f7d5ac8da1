package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

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
	opts.Reread = func() (*config.Config, error) { return configFlag{Config: c.File}.loadWith(io.Discard, os.LookupEnv) }
	return system.Open(ctx, c, opts)
}

// toolsFlags are the flags of verbs that are about the tools of servers.
type toolsFlags struct {
	configFlag
	Fresh bool `help:"Ask every server now. Without it the tools that it offered last are taken, and only servers that never answered are asked."`
}

// openTools reads the configuration and learns which tools its servers have.
func (f toolsFlags) openTools(ctx context.Context, stderr io.Writer) (*config.Config, *catalog.Snapshot, error) {
	c, err := f.load(stderr)
	if err != nil {
		return nil, nil, err
	}
	if len(c.Servers) == 0 {
		return nil, nil, &usageError{"no server is configured", "write airlock.yaml with a key mcpServers, or name a file with --config"}
	}
	opts := system.Options{
		Version: version, Logger: newLogger(stderr, false, slog.LevelWarn), Notify: notices(stderr), Tools: system.CachedTools,
	}
	if f.Fresh {
		opts.Tools = system.AskServers
	}
	done := progress(&streams{err: stderr}, "asking "+counted(len(c.Servers), "server")+" for tools")
	servers, err := system.OpenCatalog(ctx, c, opts)
	done()
	if err != nil {
		return nil, nil, err
	}
	return c, servers.Snapshot(), servers.Close()
}

// snapshot is openTools for verbs that need nothing of the configuration.
func (f toolsFlags) snapshot(ctx context.Context, stderr io.Writer) (*catalog.Snapshot, error) {
	_, snapshot, err := f.openTools(ctx, stderr)
	return snapshot, err
}
