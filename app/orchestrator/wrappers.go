package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// wrappersTarget is the path of the wrapper tree inside the sandbox.
const wrappersTarget = "/workspace/servers"

// keepUnused is how long an unused tree stays on disk for the next
// Airlock with the same tools.
const keepUnused = 7 * 24 * time.Hour

// Wrappers publishes the wrapper trees of the newest snapshot on disk, one per language, and
// keeps older ones as long as a run uses them. It is safe for concurrent use.
type Wrappers struct {
	dir    string
	logger *slog.Logger

	mu       sync.Mutex
	snapshot string           // digest of the newest snapshot
	trees    map[string]*tree // of the newest snapshot, by language
	made     codegen.Cache    // avoids generating unchanged files again
	pruned   bool             // old trees were pruned
}

// tree is a published tree and how many runs use it.
type tree struct {
	lease   *codegen.Lease
	users   int
	retired bool // no longer of the newest snapshot
}

// NewWrappers publishes trees under dir, which must be readable by everyone:
// the sandbox's user is not Airlock's.
func NewWrappers(dir string, logger *slog.Logger) *Wrappers {
	return &Wrappers{dir: dir, logger: logger, trees: map[string]*tree{}}
}

// lease returns the read-only mount of the snapshot's tree in the given language, which it
// creates if needed, and a function to release it.
func (w *Wrappers) lease(ctx context.Context, snapshot *catalog.Snapshot, language string) (runner.Mount, func(),
	error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.snapshot != snapshot.Digest() {
		w.retireAllLocked(ctx)
		w.snapshot = snapshot.Digest()
	}
	t, ok := w.trees[language]
	if ok && !t.lease.Intact() {
		w.logger.WarnContext(ctx, "wrappers were changed on disk and are made again",
			slog.String(telemetry.KeyPath, t.lease.Path))
		w.retireLocked(ctx, language)
		ok = false
	}
	if !ok {
		published, err := w.made.Generate(snapshot.Shown(), codegen.Language(language))
		if err != nil {
			return runner.Mount{}, nil, fmt.Errorf("generating %s wrappers: %w", language, err)
		}
		for _, warning := range published.Warnings {
			w.logger.InfoContext(ctx, "a wrapper leaves something out",
				slog.String(telemetry.KeyServer, warning.ServerID),
				slog.String(telemetry.KeyTool, warning.Tool), slog.String(telemetry.KeyError, warning.Text))
		}
		lease, err := codegen.Publish(ctx, w.dir, published)
		if err != nil {
			return runner.Mount{}, nil, fmt.Errorf("publishing %s wrappers: %w", language, err)
		}
		t = &tree{lease: lease}
		w.trees[language] = t
		w.pruneLocked(ctx, lease.Path)
	}
	t.users++
	return runner.Mount{Source: t.lease.Path, Target: wrappersTarget}, sync.OnceFunc(func() { w.release(ctx, t) }), nil
}

func (w *Wrappers) release(ctx context.Context, t *tree) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.users--
	w.releaseLocked(ctx, t)
}

// retireLocked retires one tree; the last run that uses it releases it.
func (w *Wrappers) retireLocked(ctx context.Context, language string) {
	t := w.trees[language]
	delete(w.trees, language)
	t.retired = true
	w.releaseLocked(ctx, t)
}

// retireAllLocked retires the trees of a snapshot that is no longer the newest.
func (w *Wrappers) retireAllLocked(ctx context.Context) {
	for language := range w.trees {
		w.retireLocked(ctx, language)
	}
}

func (w *Wrappers) releaseLocked(ctx context.Context, t *tree) {
	if !t.retired || t.users > 0 {
		return
	}
	if err := t.lease.Close(); err != nil {
		w.logger.WarnContext(ctx, "wrappers stay on disk", slog.Any(telemetry.KeyError, err))
	}
}

// pruneLocked records that the tree at path is in use and, once, removes trees that were not
// used for long. It ignores errors, which only cost disk space.
func (w *Wrappers) pruneLocked(ctx context.Context, path string) {
	now := time.Now()
	err := os.Chtimes(path, now, now)
	if !w.pruned {
		w.pruned = true
		_, pruneErr := codegen.Prune(ctx, w.dir, func(digest string) bool {
			info, err := os.Stat(filepath.Join(w.dir, strings.TrimPrefix(digest, "sha256:")))
			return err == nil && now.Sub(info.ModTime()) < keepUnused
		})
		err = errors.Join(err, pruneErr)
	}
	if err != nil {
		w.logger.WarnContext(ctx, "old wrappers stay on disk", slog.Any(telemetry.KeyError, err))
	}
}

// Close releases all trees. All runs must have ended.
func (w *Wrappers) Close(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retireAllLocked(ctx)
}
