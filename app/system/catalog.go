package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Catalog is the connected servers and the newest definitions of their tools,
// without those that changed since an operator last saw them. Its methods may
// be called concurrently.
type Catalog struct {
	config    *config.Config
	opts      Options
	upstreams *upstream.Set // nil where the tools are fixed
	snapshot  atomic.Pointer[catalog.Snapshot]

	mu      sync.Mutex // one refresh at a time
	changed []pins.Change
	refresh func(context.Context) error // called after each change of the snapshot; nil is not
}

// OpenCatalog connects the configured servers and keeps the snapshot of their
// tools new. Servers that do not answer are missing from it, with the reason.
// Of the options it uses Version, Logger and Notify. The caller closes it.
func OpenCatalog(ctx context.Context, c *config.Config, opts Options) (*Catalog, error) {
	if err := ResolveSecrets(ctx, c); err != nil {
		return nil, err
	}
	made := &Catalog{config: c, opts: opts.withDefaults()}
	set, err := upstream.New(upstreamConfigs(c), &upstream.Options{
		// What goes wrong while they start is told below, once and in words.
		Logger: slog.New(errorsOnly{made.opts.Logger.Handler()}), Version: opts.Version,
		OnChange: func(string) { made.listAgain(ctx) },
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the servers: %w", err)
	}
	made.upstreams = set
	set.Connect(ctx)
	made.mu.Lock()
	defer made.mu.Unlock()
	err = made.refreshLocked(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	made.tellMissing()
	made.tellChanged()
	return made, nil
}

// Close disconnects the servers. Calling it twice is fine.
func (c *Catalog) Close() error {
	if c.upstreams == nil {
		return nil
	}
	return c.upstreams.Close()
}

// Snapshot returns the newest tool definitions.
func (c *Catalog) Snapshot() *catalog.Snapshot { return c.snapshot.Load() }

// Changed returns the tools that the snapshot withholds because their
// definitions changed.
func (c *Catalog) Changed() []pins.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// onChange has f called after each change of the snapshot.
func (c *Catalog) onChange(f func(context.Context) error) {
	c.mu.Lock() // a server that changes its list looks for it
	defer c.mu.Unlock()
	c.refresh = f
}

// refreshLocked makes a new snapshot of what the servers now offer, without the
// tools that changed behind the operator's back.
func (c *Catalog) refreshLocked(ctx context.Context) error {
	book, err := OpenPins(c.config)
	if err != nil {
		return err
	}
	servers := c.upstreams.Servers()
	report, err := book.Check(ctx, servers, time.Now())
	if err != nil {
		return fmt.Errorf("comparing the tools with those seen before: %w", err)
	}
	snapshot, err := catalog.NewSnapshot(withhold(servers, report.Changed))
	if err != nil {
		return err
	}
	c.changed = report.Changed
	c.snapshot.Store(snapshot)
	return nil
}

// listAgain is refreshLocked for a server that changed its list later. Where
// that fails the last good snapshot stays.
func (c *Catalog) listAgain(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refreshLocked(ctx); err != nil {
		c.opts.Logger.ErrorContext(ctx, "the tools of the servers make no snapshot", slog.Any(telemetry.KeyError, err))
		return
	}
	c.announceLocked(ctx)
	for _, change := range c.changed {
		c.opts.Logger.WarnContext(ctx, "a tool changed its definition and is withheld",
			slog.String(telemetry.KeyServer, change.ServerID), slog.String(telemetry.KeyTool, change.ToolName))
	}
}

// takeAccepted puts tools into use that were withheld and that an operator has
// accepted since.
func (c *Catalog) takeAccepted(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.changed) == 0 {
		return
	}
	before := c.Snapshot()
	if err := c.refreshLocked(ctx); err != nil {
		c.opts.Logger.ErrorContext(ctx, "the tools that were accepted cannot be put into use", slog.Any(telemetry.KeyError, err))
		return
	}
	if c.Snapshot().Digest() == before.Digest() {
		c.snapshot.Store(before) // it has its index already
		return
	}
	c.announceLocked(ctx)
}

// announceLocked keeps sandboxes ready for the tools of now.
func (c *Catalog) announceLocked(ctx context.Context) {
	if c.refresh == nil {
		return
	}
	if err := c.refresh(ctx); err != nil {
		c.opts.Logger.WarnContext(ctx, "no sandboxes are kept ready for the changed tools", slog.Any(telemetry.KeyError, err))
	}
}

// tellMissing says which servers are missing and what can be done about it.
func (c *Catalog) tellMissing() {
	commands := map[string]string{}
	for _, server := range c.config.Servers {
		commands[server.ID] = server.Command
	}
	for _, server := range c.Snapshot().Servers() {
		if server.Problem != "" {
			c.opts.Notify(Notice{fmt.Sprintf("the server %q is missing: %s", server.ID, server.Problem), missingHint(server.ID, commands[server.ID])})
		}
	}
}

// tellChanged says which tools are withheld and what an operator does about it.
func (c *Catalog) tellChanged() {
	for i, change := range c.changed {
		notice := Notice{Text: fmt.Sprintf("the tool %s of the server %q is withheld: its definition changed since it was first seen",
			catalog.Quote(change.ToolName), change.ServerID)}
		if i == len(c.changed)-1 {
			notice.Hint = "look at the change with `airlock tools diff`, then `airlock tools accept SERVER TOOL`"
		}
		c.opts.Notify(notice)
	}
}

// missingHint says what to try for a server that is missing.
func missingHint(id, command string) string {
	if command == "" {
		return fmt.Sprintf("check mcpServers.%s.url and its headers", id)
	}
	if _, err := exec.LookPath(command); err != nil {
		return InstallHint(command)
	}
	return fmt.Sprintf("run the command of mcpServers.%s by hand to see what it says; startTimeout gives a slow one more time", id)
}

// InstallHint says where a missing program comes from.
func InstallHint(program string) string {
	switch program {
	case "npx", "npm", "node":
		return "install Node.js 20 or newer: apt-get install nodejs npm"
	case "uvx", "uv":
		return "install uv, which brings uvx"
	}
	return "install it, or write its full path as `command`"
}

// errorsOnly leaves warnings and what is less out of a log.
type errorsOnly struct{ slog.Handler }

// Enabled reports whether a level is that of an error.
func (h errorsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the limit.
func (h errorsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOnly{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the limit.
func (h errorsOnly) WithGroup(name string) slog.Handler { return errorsOnly{h.Handler.WithGroup(name)} }
