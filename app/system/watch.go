package system

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/internal/filewatch"
)

// pollInterval is how often files are looked at where the kernel does not tell
// of changes.
const pollInterval = 2 * time.Second

// Watch puts into force what the operator changes in files while the system
// serves: the configuration, policies, tools that were accepted, and lists that
// are to be read again. It makes sandboxes ready first, in the background. It
// returns when ctx ends.
func (s *System) Watch(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { s.catalog.warm(ctx) })
	refreshes := make(chan struct{}, 1)
	work.Go(func() { s.catalog.refreshOnRequest(ctx, refreshes) })
	s.watchFiles(ctx, func() {
		s.reload(ctx, false)
		s.catalog.takeAccepted(ctx)
		select {
		case refreshes <- struct{}{}:
		default:
		}
	})
}

// watchFiles calls changed at first and whenever one of the operator's files may
// have changed, until ctx ends.
func (s *System) watchFiles(ctx context.Context, changed func()) {
	for ctx.Err() == nil {
		files := s.operatorFiles()
		watching, stop := context.WithCancel(ctx)
		changes, done := s.fileChanges(watching, files)
		for same := true; same && ctx.Err() == nil; {
			changed()
			if same = slices.Equal(files, s.operatorFiles()); same {
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

// fileChanges tells when one of the files may have changed: at once where the
// kernel tells, else after pollInterval. The caller calls done.
func (s *System) fileChanges(ctx context.Context, files []string) (changes <-chan struct{}, done func()) {
	watcher, err := filewatch.New(ctx, files...)
	if err == nil {
		return watcher.Changes(), func() { watcher.Close() } // only what is closed already can fail
	}
	s.opts.Notify(Notice{Text: "changed files are only looked for every two seconds: " + err.Error()})
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
func (s *System) operatorFiles() []string {
	s.rules.mu.Lock()
	files := slices.Clone(s.rules.config.Policies)
	if file := s.rules.config.File; file != "" {
		files = append(files, file)
		if entry := trust.Open(s.directories.Home).Entry(file); os.MkdirAll(filepath.Dir(entry), 0o700) == nil {
			files = append(files, entry)
		}
	}
	s.rules.mu.Unlock()
	for _, own := range []func() (string, error){func() (string, error) { return pinsFile(s.config) }, refreshFile} {
		// A directory must exist to be watched.
		if file, err := own(); err == nil && os.MkdirAll(filepath.Dir(file), 0o700) == nil {
			files = append(files, file)
		}
	}
	return files
}
