package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/embedding"
	"github.com/airlock-mcp/airlock/catalog/pins"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Catalog is the connected servers and the newest definitions of their tools,
// without those that changed since an operator last saw them. Its methods may
// be called concurrently.
type Catalog struct {
	config    *config.Config
	opts      Options
	upstreams *upstream.Set            // nil where the tools are fixed
	sources   map[string]*oauth.Source // of the user whom Airlock runs for, by server; not changed after the start
	snapshot  atomic.Pointer[catalog.Snapshot]

	described codegen.Cache // how code calls the tools

	meaning *embedding.Searcher // nil where no embeddings are configured
	learn   chan struct{}       // the tools changed: their vectors are due

	due    chan struct{} // a server's tools changed: a new snapshot is due
	opened chan struct{} // closed when the first snapshot with tools was made
	done   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // one refresh at a time
	changed []pins.Change
	told    map[string]string           // by server: the reason that a person was told
	refresh func(context.Context) error // called after each change of the snapshot; nil is not
}

// ToolSource says where the tools of a catalog come from when it is opened.
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

// OpenCatalog learns the tools of the configured servers and keeps the snapshot
// of them new. Servers that do not answer are missing from it, with the reason.
// Of the options it uses Version, Logger, Notify, Tools and Profile. The caller closes it.
func OpenCatalog(ctx context.Context, c *config.Config, opts Options) (*Catalog, error) {
	made := &Catalog{
		config: c, opts: opts.withDefaults(), due: make(chan struct{}, 1), learn: make(chan struct{}, 1), opened: make(chan struct{}), told: map[string]string{},
	}
	if err := made.prepare(ctx); err != nil {
		return nil, err
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

// open connects the servers as opts.Tools says and makes the first snapshot.
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

// openLater reads the cached lists, makes the first snapshot with tools, and
// begins to connect all servers.
func (c *Catalog) openLater(ctx context.Context) {
	c.upstreams.Start(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refreshLocked(ctx); err != nil {
		if ctx.Err() == nil {
			c.opts.Logger.ErrorContext(ctx, "the tools of the servers make no snapshot", slog.Any(telemetry.KeyError, err))
		}
		return
	}
	c.tellMissingLocked()
	c.tellChanged()
}

// unlistedPatience is how long servers without a cached list are waited for where
// the lists of others are there.
const unlistedPatience = 3 * time.Second

// connectUnlisted reads the cached lists, and asks the servers that have none.
func (c *Catalog) connectUnlisted(ctx context.Context) {
	c.upstreams.Restore()
	if slices.ContainsFunc(c.upstreams.Servers(), func(s catalog.Server) bool { return s.Problem == "" }) {
		limited, cancel := context.WithTimeout(ctx, unlistedPatience)
		defer cancel()
		ctx = limited
	}
	c.upstreams.ConnectUnlisted(ctx)
}

// openWithoutTools makes a first snapshot in which all servers are starting:
// even reading thousands of cached definitions takes longer than a host waits.
func (c *Catalog) openWithoutTools(context.Context) error {
	servers := make([]catalog.Server, len(c.config.Servers))
	for i, server := range c.config.Servers { // those that no caller sees included
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
func (c *Catalog) prepare(ctx context.Context) error {
	directory, err := listsDirectory()
	if err != nil {
		return err
	}
	if c.config, err = ResolveSecrets(ctx, c.config); err != nil {
		return err
	}
	holdCredentials(c.opts.gate.all, c.config)
	if err := c.openEmbeddings(ctx); err != nil {
		return err
	}
	c.sources = map[string]*oauth.Source{}
	configs, err := c.upstreamConfigs(seen(c.config, c.opts.Profile), Principal())
	if err != nil {
		return err
	}
	c.upstreams, err = upstream.New(configs, &upstream.Options{
		// What goes wrong while they start is told in words.
		Logger: slog.New(errorsOnly{c.opts.Logger.Handler()}), Version: c.opts.Version, CacheDir: directory,
		OnChange: func(string) { c.publishSoon() }, Refresh: c.config.Refresh,
	})
	if err != nil {
		return fmt.Errorf("preparing the servers: %w", err)
	}
	return nil
}

// listsDirectory is where tool lists are cached.
func listsDirectory() (string, error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return "", err
	}
	return store.Lists(home), nil
}

// Close disconnects the servers. Calling it twice is fine.
func (c *Catalog) Close() error {
	if c.done != nil {
		c.done()
	}
	c.work.Wait()
	if c.upstreams == nil {
		return nil
	}
	return c.upstreams.Close()
}

// Await waits until the tools of the named servers, of all where none is named,
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
	c.listAgain(ctx)
	return nil
}

// Refresh asks every server for its tools and puts them into use. The error says
// which of them could not be asked.
func (c *Catalog) Refresh(ctx context.Context) error {
	if c.upstreams == nil {
		return nil
	}
	err := c.upstreams.RefreshAll(ctx)
	c.listAgain(ctx)
	return err
}

// Changes of several servers come close together, above all after the start:
// one snapshot is made of those within settle, and none waits longer than
// maxSettle.
const (
	settle    = 50 * time.Millisecond
	maxSettle = 200 * time.Millisecond
)

func (c *Catalog) publishSoon() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// publishChanges makes a new snapshot when servers have changed their tools,
// until ctx ends.
func (c *Catalog) publishChanges(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.due:
		}
		latest := time.After(maxSettle)
		for quiet := false; !quiet; {
			select {
			case <-ctx.Done():
				return
			case <-c.due:
			case <-time.After(settle):
				quiet = true
			case <-latest:
				quiet = true
			}
		}
		c.listAgain(ctx)
	}
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
	servers := c.opts.gate.servers(c.upstreams.Servers())
	report, err := book.Check(ctx, servers, time.Now())
	if err != nil {
		return fmt.Errorf("comparing the tools with those seen before: %w", err)
	}
	snapshot, err := catalog.NewSnapshot(withhold(servers, report.Changed))
	if err != nil {
		return err
	}
	if c.opts.Serving { // so that no search pays for it
		c.seen(snapshot).Prepare(c.seen(c.snapshot.Load()), c.usages, string(codegen.Python), string(codegen.Node))
	}
	c.changed = report.Changed
	c.snapshot.Store(snapshot)
	c.learnSoon()
	return nil
}

// seen returns what the callers see, where all have one profile.
func (c *Catalog) seen(snapshot *catalog.Snapshot) *catalog.Snapshot {
	if snapshot == nil || c.opts.Profile == "" {
		return snapshot
	}
	profile, err := c.config.Profile(c.opts.Profile)
	if err != nil {
		return snapshot.Within(nothing)
	}
	return snapshot.Within(profile)
}

// usages says how code calls tools.
func (c *Catalog) usages(servers []catalog.Server, language string) map[catalog.ToolRef]catalog.Usage {
	usages, err := c.described.Usages(servers, codegen.Language(language))
	if err != nil {
		c.opts.Logger.ErrorContext(context.Background(), "searches do not say how tools are called", slog.Any(telemetry.KeyError, err))
	}
	return usages
}

// listAgain is refreshLocked for servers that changed their lists later. Where
// that fails the last good snapshot stays.
func (c *Catalog) listAgain(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, withheld := c.snapshot.Load(), c.changed
	if err := c.refreshLocked(ctx); err != nil {
		if ctx.Err() == nil {
			c.opts.Logger.ErrorContext(ctx, "the tools of the servers make no snapshot", slog.Any(telemetry.KeyError, err))
		}
		return
	}
	c.tellMissingLocked()
	if c.snapshot.Load().Digest() == before.Digest() {
		return
	}
	c.announceLocked(ctx)
	for _, change := range c.changed {
		if slices.ContainsFunc(withheld, change.Same) {
			continue
		}
		c.opts.Logger.WarnContext(ctx, "a tool changed its definition and is withheld",
			slog.String(telemetry.KeyServer, change.ServerID), slog.String(telemetry.KeyTool, change.ToolName))
	}
}

// takeAccepted puts tools into use that were withheld and that an operator has
// accepted since.
func (c *Catalog) takeAccepted(ctx context.Context) {
	if len(c.Changed()) > 0 {
		c.listAgain(ctx)
	}
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

// tellMissingLocked says, once for each reason, which servers are missing and
// what can be done about it, and which are there again.
func (c *Catalog) tellMissingLocked() {
	c.tellBackLocked()
	for _, missing := range c.snapshot.Load().Missing("") {
		if missing.Starting || c.told[missing.ServerID] == missing.Problem {
			continue
		}
		c.told[missing.ServerID] = missing.Problem
		c.opts.Notify(c.missingNotice(missing))
	}
}

// missingNotice says that a server is missing, and what can be done about it.
func (c *Catalog) missingNotice(missing catalog.MissingServer) Notice {
	command := ""
	for _, server := range c.config.Servers {
		if server.ID == missing.ServerID {
			command = server.Command
		}
	}
	return Notice{
		Text: fmt.Sprintf("the server %q is missing: %s", missing.ServerID, missing.Problem),
		Hint: missingHint(missing.ServerID, command, missing.Problem), Server: missing.ServerID,
	}
}

// tellBackLocked says which of the servers that were missing are there again.
func (c *Catalog) tellBackLocked() {
	snapshot := c.snapshot.Load()
	for _, id := range slices.Sorted(maps.Keys(c.told)) {
		if len(snapshot.Missing(id)) > 0 {
			continue
		}
		delete(c.told, id)
		server, _ := snapshot.Server(id)
		c.opts.Notify(Notice{Text: fmt.Sprintf("the server %q is there again, with %d tools", id, len(server.Tools)), Server: id})
	}
}

// tellChanged says which tools are withheld and what an operator does about it.
func (c *Catalog) tellChanged() {
	for _, notice := range changedNotices(c.changed) {
		c.opts.Notify(notice)
	}
}

func changedNotices(changed []pins.Change) []Notice {
	notices := make([]Notice, len(changed))
	for i, change := range changed {
		notice := Notice{Text: fmt.Sprintf("the tool %s of the server %q is withheld: its definition changed since it was first seen",
			catalog.Quote(change.ToolName), change.ServerID)}
		if i == len(changed)-1 {
			notice.Hint = "look at the change with `airlock tools diff`, then `airlock tools accept SERVER TOOL`"
		}
		notices[i] = notice
	}
	return notices
}

// notices says what is wrong now with the servers that callers of a profile see, as
// one who asks for the first time is told it.
func (c *Catalog) notices(profile string) []Notice {
	var notices []Notice
	if c.upstreams == nil {
		return nil
	}
	shown := map[string]bool{}
	for _, server := range seen(c.config, profile) {
		shown[server.ID] = true
	}
	for _, missing := range c.snapshot.Load().Missing("") {
		if !missing.Starting && shown[missing.ServerID] {
			notices = append(notices, c.missingNotice(missing))
		}
	}
	changed := slices.DeleteFunc(slices.Clone(c.Changed()), func(change pins.Change) bool { return !shown[change.ServerID] })
	return append(notices, changedNotices(changed)...)
}

// missingHint says what to try for a server that is missing because of problem.
func missingHint(id, command, problem string) string {
	key := "mcpServers." + id
	is := func(words string) bool { return strings.Contains(problem, words) }
	switch {
	case is("the user signs in with"):
		return fmt.Sprintf("run `airlock login %s`; its tools are here as soon as that is done", id)
	case command == "" && is("wants other credentials"):
		return fmt.Sprintf("write its credentials under %s.headers", key)
	case command == "" && is("could not be reached"):
		return fmt.Sprintf("start the server, or mend %s.url", key)
	case is("did not answer within"):
		return fmt.Sprintf("%s.startTimeout gives it more time", key)
	case command == "":
		return fmt.Sprintf("check %s.url and its headers", key)
	case is("working directory"):
		return fmt.Sprintf("mend %s.cwd", key)
	case is("was not found") && !is("first line names"):
		if _, err := exec.LookPath(command); err != nil {
			return InstallHint(command)
		}
	}
	return fmt.Sprintf("run the command of %s by hand to see what it says", key)
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
