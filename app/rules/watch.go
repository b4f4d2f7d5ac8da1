package rules

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/filewatch"
)

// pollInterval is the interval for checking files if the kernel cannot report changes.
const pollInterval = 2 * time.Second

// Watch watches the files of the operator and puts changes in force: the configuration, policies,
// accepted tools and requests to read lists of tools again. It first fills the pool in the
// background. It returns when ctx ends.
func (r *Rules) Watch(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { r.opts.Servers.Catalog().Warm(ctx) })
	if r.opts.State.IsShared() {
		work.Go(func() { r.opts.Servers.Catalog().Follow(ctx) })
		work.Go(func() { r.followConfirmations(ctx) })
	}
	refreshes := make(chan struct{}, 1)
	work.Go(func() { r.opts.Servers.Catalog().RefreshOnRequest(ctx, refreshes) })
	r.watchFiles(ctx, func() {
		r.reload(ctx, false)
		r.opts.Servers.Catalog().TakeAccepted(ctx)
		select {
		case refreshes <- struct{}{}:
		default:
		}
	})
}

// watchFiles calls changed once at the start and whenever one of the operator's files may have
// changed, until ctx ends.
func (r *Rules) watchFiles(ctx context.Context, changed func()) {
	for ctx.Err() == nil {
		files := r.operatorFiles()
		watching, stop := context.WithCancel(ctx)
		changes, done := r.fileChanges(watching, files)
		for same := true; same && ctx.Err() == nil; {
			changed()
			if same = slices.Equal(files, r.operatorFiles()); same {
				select {
				case <-ctx.Done():
				case <-changes:
				}
			}
		}
		stop()
		done()
	}
}

// fileChanges returns a channel that receives when one of the files may have changed: at once if
// the kernel reports changes, otherwise every pollInterval. The caller must call done.
func (r *Rules) fileChanges(ctx context.Context, files []string) (changes <-chan struct{}, done func()) {
	watcher, err := filewatch.New(ctx, files...)
	if err == nil {
		return watcher.Changes(), func() { watcher.Close() } // Close fails only if called twice
	}
	r.opts.Notify(upstreams.Notice{Text: "changed files are only looked for every two seconds: " + err.Error()})
	ticks := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			select {
			case <-ctx.Done():
				return
			case ticks <- struct{}{}:
			}
		}
	})
	return ticks, ticking.Wait
}

// operatorFiles are the files that an operator changes while Airlock serves.
func (r *Rules) operatorFiles() []string {
	c := r.Config()
	files := slices.Clone(c.Policies)
	if file := c.File; file != "" {
		files = append(files, file)
		if entry := trust.Open(r.opts.Directories.Home).Entry(file); os.MkdirAll(filepath.Dir(entry), 0o700) == nil {
			files = append(files, entry)
		}
	}
	// A directory must exist to be watched.
	if file, err := state.RefreshFile(); err == nil && os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		files = append(files, file)
	}
	return files
}

// confirmationsInterval is how often a node asks whether a refused configuration was confirmed at another node.
const confirmationsInterval = time.Second

// followConfirmations reads the files again when another node has a person's confirmation of them.
func (r *Rules) followConfirmations(ctx context.Context) {
	ticker := time.NewTicker(confirmationsInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r.mu.Lock()
		waits := r.waits
		r.mu.Unlock()
		if waits == nil {
			continue
		}
		if _, found, err := confirmedElsewhere(ctx, r.opts.State, *waits); err == nil && found {
			r.reload(ctx, false)
		}
	}
}
