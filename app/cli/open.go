package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/catalog"
)

// notices returns a function that prints notices about the servers.
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

// open reads the configuration and opens the system. The caller must close it.
func (f configFlag) open(ctx context.Context, stderr io.Writer, opts system.Options) (*system.System, error) {
	c, err := f.load(stderr)
	if err != nil {
		return nil, err
	}
	return openSystem(ctx, c, stderr, opts)
}

// reread returns a function that reads the file of a configuration again.
func reread(c *config.Config) func() (*config.Config, error) {
	return func() (*config.Config, error) { return configFlag{Config: c.File}.loadWith(io.Discard, os.LookupEnv) }
}

func openSystem(ctx context.Context, c *config.Config, stderr io.Writer, opts system.Options) (*system.System, error) {
	opts.Version, opts.Notify = version, notices(stderr)
	if opts.Reread == nil {
		opts.Reread = reread(c)
	}
	return system.Open(ctx, c, opts)
}

// profiled are the flags of verbs that act for a client.
type profiled struct {
	configFlag
	Profile string `placeholder:"NAME" help:"What the client sees: a name under profiles in the configuration; by default the one that is marked there, else everything."`
}

// profileName returns the name of the requested or the default profile, or "" if there is no
// profile and everything is visible.
func profileName(c *config.Config, asked string) (string, error) {
	profile, err := c.Profile(asked)
	var unknown *config.ProfileError
	switch {
	case errors.As(err, &unknown):
		return "", &usageError{unknown.Error(), unknown.Hint()}
	case err != nil || profile == nil:
		return "", err
	}
	return profile.Name, nil
}

// toolsFlags are the flags of verbs about the tools of servers.
type toolsFlags struct {
	configFlag
	Fresh bool `help:"Ask every server now. Without it the tools that it offered last are taken, and only servers that never answered are asked."`
}

// openTools reads the configuration and returns it with the tools of its servers.
func (f toolsFlags) openTools(ctx context.Context, stderr io.Writer) (*config.Config, *catalog.Snapshot, error) {
	c, err := f.load(stderr)
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := f.ask(ctx, c, "", stderr)
	return c, snapshot, err
}

// ask returns the tools of the servers that are visible with a profile.
func (f toolsFlags) ask(ctx context.Context, c *config.Config, profile string, stderr io.Writer) (*catalog.Snapshot, error) {
	if len(c.Servers) == 0 {
		return nil, &usageError{"no server is configured", "write airlock.yaml with a key mcpServers, or name a file with --config"}
	}
	opts := system.Options{
		Version: version, Logger: newLogger(stderr, false, slog.LevelWarn), Notify: notices(stderr), Tools: system.CachedTools, Profile: profile,
	}
	if f.Fresh {
		opts.Tools = system.AskServers
	}
	done := progress(&streams{err: stderr}, "asking "+counted(len(c.Servers), "server")+" for tools")
	servers, err := system.OpenCatalog(ctx, c, opts)
	done()
	if err != nil {
		return nil, err
	}
	return servers.Snapshot(), servers.Close()
}

// snapshot is openTools for verbs that do not need the configuration.
func (f toolsFlags) snapshot(ctx context.Context, stderr io.Writer) (*catalog.Snapshot, error) {
	_, snapshot, err := f.openTools(ctx, stderr)
	return snapshot, err
}

// profiledTools are the flags of verbs that show tools as a client sees them.
type profiledTools struct {
	toolsFlags
	Profile string `placeholder:"NAME" help:"As a client with this profile sees them; by default as one that names none."`
}

// snapshot returns the tools that are visible with the profile.
func (f profiledTools) snapshot(ctx context.Context, stderr io.Writer) (*catalog.Snapshot, error) {
	c, err := f.load(stderr)
	if err != nil {
		return nil, err
	}
	name, err := profileName(c, f.Profile)
	if err != nil {
		return nil, err
	}
	snapshot, err := f.ask(ctx, c, name, stderr)
	if err != nil || name == "" {
		return snapshot, err
	}
	profile, err := c.Profile(name)
	if err != nil {
		return nil, err
	}
	return snapshot.Within(profile), nil
}
