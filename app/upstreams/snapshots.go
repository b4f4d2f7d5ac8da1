package upstreams

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Several servers often change within a short time, above all after the start. Changes within
// settle share one snapshot, and no change waits longer than maxSettle.
const (
	settle    = 50 * time.Millisecond
	maxSettle = 200 * time.Millisecond
)

// pause returns how long no server must have changed before a snapshot is made, and how long a change waits at most.
// took is how long the last snapshot took. It grows with the number of tools, and so does the pause: otherwise many
// servers that answer one after the other would keep Airlock busy with snapshots that few callers see.
func pause(took time.Duration) (quiet, longest time.Duration) {
	return max(settle, took/10), max(maxSettle, took)
}

func (c *Catalog) publishSoon() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// publishChanges makes a new snapshot when servers have changed their tools,
// until ctx ends.
func (c *Catalog) publishChanges(ctx context.Context) {
	var took time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.due:
		}
		quiet, longest := pause(took)
		latest := time.After(longest)
		for settled := false; !settled; {
			select {
			case <-ctx.Done():
				return
			case <-c.due:
			case <-time.After(quiet):
				settled = true
			case <-latest:
				settled = true
			}
		}
		began := time.Now()
		c.ListAgain(ctx)
		took = time.Since(began)
	}
}

// ListAgain is refreshLocked for servers that changed their lists later. If it fails, the last
// valid snapshot stays.
func (c *Catalog) ListAgain(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, withheld := c.snapshot.Load(), c.pinned.Changed
	if err := c.refreshLocked(ctx); err != nil {
		if ctx.Err() == nil {
			c.opts.Logger.ErrorContext(ctx, "the tools of the servers make no snapshot",
				slog.Any(telemetry.KeyError, err))
		}
		return
	}
	c.tellMissingLocked()
	if c.snapshot.Load().Digest() == before.Digest() {
		return
	}
	c.announceLocked(ctx)
	c.changes.listed(before, c.snapshot.Load())
	for _, change := range c.pinned.Changed {
		if slices.ContainsFunc(withheld, change.Same) {
			continue
		}
		c.opts.Logger.WarnContext(ctx, "a tool with a new or changed definition is withheld",
			slog.String(telemetry.KeyServer, change.ServerID), slog.String(telemetry.KeyTool, change.ToolName))
	}
}

// TakeAccepted updates the snapshot if an operator has accepted tools that were withheld.
func (c *Catalog) TakeAccepted(ctx context.Context) {
	if len(c.Changed()) > 0 {
		c.ListAgain(ctx)
	}
}

// refreshLocked makes a new snapshot of the current tools of the servers. It withholds tools whose
// definition changed and was not accepted.
func (c *Catalog) refreshLocked(ctx context.Context) error {
	book := c.opts.State.Pins(c.config.Load())
	servers := c.opts.Redactors.servers(c.upstreams.Servers())
	report, err := book.Check(ctx, servers, time.Now())
	if err == nil && c.opts.State.IsShared() {
		if found := c.foundLocked(report); len(found) > 0 {
			report.Generation, err = book.MarkFound(ctx, found)
		}
	}
	if err != nil {
		c.pinned.Generation = unknownGeneration
		return fmt.Errorf("comparing the tools with those seen before: %w", err)
	}
	snapshot, err := catalog.NewSnapshot(withhold(servers, report.Changed))
	if err != nil {
		return err
	}
	if c.opts.Serving { // so that searches do not wait for it
		c.seen(snapshot).Prepare(c.seen(c.snapshot.Load()), c.usages, string(codegen.Python), string(codegen.Node))
	}
	c.pinned = report
	c.snapshot.Store(snapshot)
	c.learnSoon()
	return nil
}

// Seen returns the part of the snapshot that callers see if all of them have one profile.
func (c *Catalog) seen(snapshot *catalog.Snapshot) *catalog.Snapshot {
	if snapshot == nil || c.opts.Profile == "" {
		return snapshot
	}
	profile, err := c.config.Load().Profile(c.opts.Profile)
	if err != nil {
		return snapshot.Within(&catalog.Profile{})
	}
	return snapshot.Within(profile)
}

// usages returns how code in a language calls the tools.
func (c *Catalog) usages(servers []catalog.Server, language string) map[catalog.ToolRef]catalog.Usage {
	usages, err := c.described.Usages(servers, codegen.Language(language))
	if err != nil {
		c.opts.Logger.ErrorContext(context.Background(), "searches do not say how tools are called",
			slog.Any(telemetry.KeyError, err))
	}
	return usages
}

// announceLocked publishes the wrappers of the current tools and prepares the sandboxes of the pool for them.
func (c *Catalog) announceLocked(ctx context.Context) {
	if c.refresh == nil {
		return
	}
	if err := c.refresh(ctx); err != nil {
		c.opts.Logger.WarnContext(ctx, "no sandboxes are kept ready for the changed tools",
			slog.Any(telemetry.KeyError, err))
		return
	}
	for _, server := range c.snapshot.Load().Servers() {
		if !server.Noticed.IsZero() && !server.Noticed.Equal(c.published[server.ID]) {
			c.published[server.ID] = server.Noticed
			telemetry.Published.Record(ctx, time.Since(server.Noticed), "", telemetry.AttrServer.String(server.ID))
		}
	}
}
