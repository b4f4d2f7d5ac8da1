package approval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Watch calls visit for each question that is open or becomes open, once, until
// ctx ends, which is no error. While it runs, every Airlock of the directory knows
// that somebody listens and keeps its questions open.
func Watch(ctx context.Context, dir string, visit func(Posted) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("watching approvals: %w", err)
	}
	path := filepath.Join(dir, telemetry.NewID(watcherPrefix))
	mark, err := store.CreateHeld(path, nil, 0o600)
	if err != nil {
		return fmt.Errorf("watching approvals: %w", err)
	}
	defer func() { os.Remove(path); mark.Release() }() // a mark that stays is swept
	seen := map[string]bool{}
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		open, err := List(dir)
		if err != nil {
			return err
		}
		for _, q := range open {
			if seen[q.ID] {
				continue
			}
			seen[q.ID] = true
			if err := visit(q); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// isWatched says whether a Watch is running anywhere.
func (d *Desk) isWatched() bool {
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), watcherPrefix) && store.IsHeld(filepath.Join(d.dir, entry.Name())) {
			return true
		}
	}
	return false
}
