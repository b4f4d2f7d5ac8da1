package verb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
)

// Notices returns a function that prints notices about the servers.
func Notices(stderr io.Writer) func(upstreams.Notice) {
	return func(n upstreams.Notice) {
		fmt.Fprintf(stderr, "airlock: %s\n", n.Text)
		if n.Hint != "" {
			fmt.Fprintf(stderr, "hint: %s\n", n.Hint)
		}
	}
}

// NewLogger returns the logger of a verb.
func NewLogger(stderr io.Writer, asJSON bool, least slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: least}
	if asJSON {
		return slog.New(slog.NewJSONHandler(stderr, opts))
	}
	return slog.New(slog.NewTextHandler(stderr, opts))
}

// Open reads the configuration and opens the system. The caller must close it.
func (f ConfigFlag) Open(ctx context.Context, stderr io.Writer, opts system.Options) (*system.System, error) {
	c, err := f.Load(stderr)
	if err != nil {
		return nil, err
	}
	return OpenSystem(ctx, c, stderr, opts)
}

// Reread returns a function that reads the file of a configuration again. An address of a flag replaces
// serve.listen, unless it is empty.
func Reread(c *config.Config, listen string) func() (*config.Config, error) {
	return func() (*config.Config, error) {
		next, err := ConfigFlag{Config: c.File}.loadWith(io.Discard, os.LookupEnv)
		if err == nil && listen != "" {
			next.Serve.Listen = listen
		}
		return next, err
	}
}

// OpenSystem opens the system of a configuration.
func OpenSystem(ctx context.Context, c *config.Config, stderr io.Writer, opts system.Options) (*system.System, error) {
	opts.Version, opts.Notify = Version, Notices(stderr)
	if opts.Reread == nil {
		opts.Reread = Reread(c, "")
	}
	return system.Open(ctx, c, opts)
}

// Profiled are the flags of verbs that act for a client.
type Profiled struct {
	ConfigFlag
	Profile string `placeholder:"NAME" help:"What the client sees: a name under profiles in the configuration; by default the one that is marked there, else everything."`
}

// ProfileName returns the name of the requested or the default profile, or "" if there is no
// profile and everything is visible.
func ProfileName(c *config.Config, asked string) (string, error) {
	profile, err := c.Profile(asked)
	var unknown *config.ProfileError
	switch {
	case errors.As(err, &unknown):
		return "", &UsageError{unknown.Error(), unknown.Hint()}
	case err != nil || profile == nil:
		return "", err
	}
	return profile.Name, nil
}

// ToolsFlags are the flags of verbs about the tools of servers.
type ToolsFlags struct {
	ConfigFlag
	Fresh bool `help:"Ask every server now. Without it the tools that it offered last are taken, and only servers that never answered are asked."`
}

// OpenTools reads the configuration and returns it with the tools of its servers.
func (f ToolsFlags) OpenTools(ctx context.Context, stderr io.Writer) (*config.Config, *catalog.Snapshot, error) {
	c, err := f.Load(stderr)
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := f.Ask(ctx, c, "", stderr)
	return c, snapshot, err
}

// Ask returns the tools of the servers that are visible with a profile.
func (f ToolsFlags) Ask(ctx context.Context, c *config.Config, profile string, stderr io.Writer) (*catalog.Snapshot,
	error) {
	if len(c.Servers) == 0 {
		return nil, &UsageError{"no server is configured",
			"write airlock.yaml with a key mcpServers, or name a file with --config"}
	}
	opts := system.Options{
		Version: Version, Logger: NewLogger(stderr, false, slog.LevelWarn), Notify: Notices(stderr),
		Tools: upstreams.CachedTools, Profile: profile,
	}
	if f.Fresh {
		opts.Tools = upstreams.AskServers
	}
	done := Progress(&Streams{Err: stderr}, "asking "+Counted(len(c.Servers), "server")+" for tools")
	servers, err := system.OpenCatalog(ctx, c, opts)
	done()
	if err != nil {
		return nil, err
	}
	return servers.Snapshot(), servers.Close()
}

// Snapshot is openTools for verbs that do not need the configuration.
func (f ToolsFlags) Snapshot(ctx context.Context, stderr io.Writer) (*catalog.Snapshot, error) {
	_, snapshot, err := f.OpenTools(ctx, stderr)
	return snapshot, err
}

// ProfiledTools are the flags of verbs that show tools as a client sees them.
type ProfiledTools struct {
	ToolsFlags
	Profile string `placeholder:"NAME" help:"As a client with this profile sees them; by default as one that names none."`
}

// Snapshot returns the tools that are visible with the profile.
func (f ProfiledTools) Snapshot(ctx context.Context, stderr io.Writer) (*catalog.Snapshot, error) {
	c, err := f.Load(stderr)
	if err != nil {
		return nil, err
	}
	name, err := ProfileName(c, f.Profile)
	if err != nil {
		return nil, err
	}
	snapshot, err := f.Ask(ctx, c, name, stderr)
	if err != nil || name == "" {
		return snapshot, err
	}
	profile, err := c.Profile(name)
	if err != nil {
		return nil, err
	}
	return snapshot.Within(profile), nil
}
