package system

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// RequestRefresh requests every Airlock of this user that serves to read the lists of its servers
// again. They do so within seconds.
func RequestRefresh() error {
	path, err := refreshFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("asking for a refresh: %w", err)
	}
	return store.WriteFile(path, []byte(time.Now().UTC().Format(time.RFC3339Nano)+"\n"), 0o600)
}

// refreshFile returns the path of the file that RequestRefresh writes. Its modification time is the
// time of the request.
func refreshFile() (string, error) {
	directory, err := listsDirectory()
	return filepath.Join(directory, "refresh"), err
}

// refreshOnRequest reads all lists again when an operator requests it, until ctx ends. It checks
// for a request whenever looks receives.
func (c *Catalog) refreshOnRequest(ctx context.Context, looks <-chan struct{}) {
	last := refreshRequested()
	for {
		select {
		case <-ctx.Done():
			return
		case <-looks:
		}
		if asked := refreshRequested(); !asked.Equal(last) {
			last = asked
			if err := c.Refresh(ctx); err != nil && ctx.Err() == nil {
				c.opts.Logger.WarnContext(ctx, "not every server could be asked for its tools",
					slog.Any(telemetry.KeyError, err))
			}
		}
	}
}

// refreshRequested returns the time of the last request, or the zero time.
func refreshRequested() time.Time {
	path, err := refreshFile()
	if err != nil {
		return time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// warm prepares the sandboxes of the pool for the current tools.
func (c *Catalog) warm(ctx context.Context) {
	if c.upstreams != nil { // else the tools are fixed
		select {
		case <-c.opened:
		case <-ctx.Done():
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.announceLocked(ctx)
}
