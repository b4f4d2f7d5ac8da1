// Package upstreams connects the configured MCP servers, for the user who runs Airlock and for callers with sign-ins of
// their own. It publishes snapshots of their tools, withholds changed definitions, and applies changes of the
// configuration.
package upstreams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/embedding"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Catalog is the connected servers and the newest definitions of their tools,
// without those that changed since an operator last saw them. Its methods
// are safe for concurrent use.
type Catalog struct {
	config    atomic.Pointer[config.Config] // with credentials in place of references
	opts      Options
	upstreams *upstream.Set // nil if the tools are fixed
	contained *contained.Servers
	snapshot  atomic.Pointer[catalog.Snapshot]

	described codegen.Cache // how code calls the tools
	changes   changes

	meaning *embedding.Searcher // nil if no embeddings are configured
	learn   chan struct{}       // the tools changed: their vectors are due

	due    chan struct{} // a server's tools changed: a new snapshot is due
	opened chan struct{} // closed when the first snapshot with tools was made
	done   context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex        // one refresh at a time
	pinned pins.Report       // of the comparison of the tools with the pins
	told   map[string]string // by server: the reason that was last reported
	// published is, by server, when the last change was noticed whose wrappers are published.
	published map[string]time.Time
	refresh   func(context.Context) error // called after each change of the snapshot; nil is not
}

// ToolSource selects the source of a catalog's tools when it is opened.
type ToolSource int

const (
	// AskServers connects all servers and waits until each has listed its tools
	// or failed.
	AskServers ToolSource = iota
	// CachedTools takes the lists that were cached earlier, and connects only the
	// servers that have none.
	CachedTools
	// CachedThenServers takes the cached lists and connects all servers in the
	// background, waiting for none.
	CachedThenServers
)

// Open reads the tools of the configured servers and keeps their snapshot up to date. For a server that does not
// answer, the snapshot has a problem instead of tools. The caller must close the catalog.
func Open(ctx context.Context, c *config.Config, opts Options) (*Catalog, error) {
	if opts.State == nil {
		opts.ownsState = true
		directories, err := setup.FindDirectories(c)
		if err != nil {
			return nil, err
		}
		opts.State = state.New(directories, c, state.Options{Version: opts.Version, Logger: opts.Logger})
	}
	made := &Catalog{
		opts: opts, due: make(chan struct{}, 1), learn: make(chan struct{}, 1),
		opened: make(chan struct{}), told: map[string]string{}, published: map[string]time.Time{},
	}
	if err := made.prepare(ctx, c); err != nil {
		return nil, errors.Join(err, made.closeState())
	}
	open := made.open
	if opts.Tools == CachedThenServers {
		open = made.openWithoutTools
	}
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	made.done = stop
	if made.meaning != nil {
		made.work.Go(func() { made.learnTools(running) })
	}
	made.work.Go(func() {
		if opts.Tools == CachedThenServers {
			made.openLater(running)
		}
		close(made.opened)
		made.publishChanges(running)
	})
	return made, nil
}

// open connects the servers according to opts.Tools and makes the first snapshot.
func (c *Catalog) open(ctx context.Context) error {
	if c.opts.Tools == CachedTools {
		c.connectUnlisted(ctx)
	} else {
		c.upstreams.Connect(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.refreshLocked(ctx), ctx.Err()); err != nil {
		return err
	}
	c.tellMissingLocked()
	c.tellChanged()
	return nil
}

// openLater reads the cached lists, makes the first snapshot with tools, and starts connecting all
// servers.
func (c *Catalog) openLater(ctx context.Context) {
	c.upstreams.Start(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refreshLocked(ctx); err != nil {
		if ctx.Err() == nil {
			c.opts.Logger.ErrorContext(ctx, "the tools of the servers make no snapshot",
				slog.Any(telemetry.KeyError, err))
		}
		return
	}
	c.tellMissingLocked()
	c.tellChanged()
}

// unlistedTimeout is how long to wait for servers without a cached list if others have one.
const unlistedTimeout = 3 * time.Second

// connectUnlisted reads the cached lists, and asks the servers that have none.
func (c *Catalog) connectUnlisted(ctx context.Context) {
	c.upstreams.Restore()
	if slices.ContainsFunc(c.upstreams.Servers(), func(s catalog.Server) bool { return s.Problem == "" }) {
		limited, cancel := context.WithTimeout(ctx, unlistedTimeout)
		defer cancel()
		ctx = limited
	}
	c.upstreams.ConnectUnlisted(ctx)
}

// openWithoutTools makes a first snapshot in which all servers are starting:
// even reading thousands of cached definitions takes longer than a host waits.
func (c *Catalog) openWithoutTools(context.Context) error {
	configured := c.config.Load().Servers
	servers := make([]catalog.Server, len(configured))
	for i, server := range configured { // including those that no caller sees
		servers[i] = catalog.Server{ID: server.ID, Problem: catalog.StillStarting, Retrying: true}
	}
	snapshot, err := catalog.NewSnapshot(servers)
	if err != nil {
		return err
	}
	c.snapshot.Store(snapshot)
	return nil
}

// prepare makes the set of servers; none is started.
func (c *Catalog) prepare(ctx context.Context, configured *config.Config) error {
	directory, err := state.ListsDirectory()
	if err != nil {
		return err
	}
	resolved, err := credentials.Resolve(ctx, configured)
	if err != nil {
		return err
	}
	c.config.Store(resolved)
	credentials.Hold(c.opts.Redactors.All, resolved)
	if err := c.openEmbeddings(ctx); err != nil {
		return err
	}
	if err := c.prepareContained(); err != nil {
		return err
	}
	configs, err := c.upstreamConfigs(Seen(resolved, c.opts.Profile), setup.Principal())
	if err != nil {
		return err
	}
	c.upstreams, err = upstream.New(configs, &upstream.Options{
		// Problems during their start are reported to the user by tellMissingLocked.
		Logger: slog.New(errorsOnly{c.opts.Logger.Handler()}), Version: c.opts.Version, CacheDir: directory,
		OnChange: func(string) { c.publishSoon() }, Refresh: resolved.Refresh,
		OnUpdated: c.changes.updates(c.ownerOf),
	})
	if err != nil {
		return fmt.Errorf("preparing the servers: %w", err)
	}
	return nil
}

// Fixed returns a catalog of tools that no server has, with a configuration whose references are resolved.
func Fixed(c *config.Config, snapshot *catalog.Snapshot, opts Options) *Catalog {
	made := &Catalog{opts: opts}
	made.config.Store(c)
	made.snapshot.Store(snapshot)
	return made
}

// Config returns the configuration of the servers, with credentials in place of references.
func (c *Catalog) Config() *config.Config { return c.config.Load() }

// Contained returns the servers that run in sandboxes, or nil if the tools are fixed.
func (c *Catalog) Contained() *contained.Servers { return c.contained }

// IsOpen reports whether the first snapshot with tools was made.
func (c *Catalog) IsOpen() bool {
	if c.opened == nil {
		return true
	}
	select {
	case <-c.opened:
		return true
	default:
		return false
	}
}

// closeTimeout bounds the removal of the sandboxes of contained servers, beside that of the system.
const closeTimeout = 30 * time.Second

// Close disconnects the servers. It may be called twice.
func (c *Catalog) Close() error {
	if c.done != nil {
		c.done()
	}
	c.work.Wait()
	c.changes.close()
	if c.upstreams == nil {
		return c.closeState()
	}
	err := c.upstreams.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(err, c.contained.Close(ctx), c.closeState())
}

func (c *Catalog) closeState() error {
	if !c.opts.ownsState {
		return nil
	}
	return c.opts.State.Close()
}

// Await waits until the tools of the named servers, or of all servers if none is named,
// are known, or the first attempt to connect to them has failed, and are in the
// snapshot. It returns an error when ctx ends before.
func (c *Catalog) Await(ctx context.Context, serverIDs ...string) error {
	if c.upstreams == nil {
		return nil
	}
	select {
	case <-c.opened:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the tools: %w", ctx.Err())
	}
	if err := c.upstreams.Await(ctx, serverIDs...); err != nil {
		return err
	}
	c.ListAgain(ctx)
	return nil
}

// Refresh asks every server for its tools and puts them into use. The error lists
// the servers that could not be asked.
func (c *Catalog) Refresh(ctx context.Context) error {
	if c.upstreams == nil {
		return nil
	}
	err := c.upstreams.RefreshAll(ctx)
	c.ListAgain(ctx)
	return err
}

// Snapshot returns the newest tool definitions. It waits for the cached ones to be
// read, never for a server.
func (c *Catalog) Snapshot() *catalog.Snapshot {
	if c.opened != nil {
		<-c.opened
	}
	return c.snapshot.Load()
}

// Changed returns the tools that the snapshot withholds because their
// definitions changed.
func (c *Catalog) Changed() []pins.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pinned.Changed
}

// OnChange sets a function that is called after each change of the snapshot.
func (c *Catalog) OnChange(f func(context.Context) error) {
	c.mu.Lock() // a server that changes its list looks for it
	defer c.mu.Unlock()
	c.refresh = f
}

// errorsOnly is a handler that drops records below the level of errors.
type errorsOnly struct{ slog.Handler }

// Enabled reports whether level is at least that of an error.
func (h errorsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the limit.
func (h errorsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOnly{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the limit.
func (h errorsOnly) WithGroup(name string) slog.Handler { return errorsOnly{h.Handler.WithGroup(name)} }
