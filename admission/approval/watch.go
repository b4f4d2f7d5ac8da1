package approval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/internal/filewatch"
)

// lookInterval is how often a watcher looks at the directory where the kernel
// does not say when it changes, and how often it looks in any case, because a
// process that dies changes nothing there.
const (
	lookInterval  = 150 * time.Millisecond
	aliveInterval = 5 * time.Second
)

// Watcher is told of the questions of all Airlocks of a directory. Its methods are
// called one after the other.
type Watcher interface {
	// Opened is called once for each question that is open or becomes open.
	Opened(q Posted) error
	// Closed is called when a question is open no longer; outcome says in a
	// sentence what became of it.
	Closed(q Posted, outcome string) error
}

// Watch tells w of each question until ctx ends, which is no error.
func Watch(ctx context.Context, dir string, w Watcher) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("watching approvals: %w", err)
	}
	changes, stop := changesOf(dir)
	defer stop()
	known := map[string]Posted{}
	for {
		if err := compare(dir, known, w); err != nil {
			return fmt.Errorf("watching approvals: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
	}
}

// compare tells w what has changed since known, and brings that up to date.
func compare(dir string, known map[string]Posted, w Watcher) error {
	open, err := List(dir)
	if err != nil {
		return err
	}
	isOpen := map[string]bool{}
	for _, q := range open {
		isOpen[q.ID] = true
	}
	for id, q := range known {
		if isOpen[id] {
			continue
		}
		delete(known, id)
		if err := w.Closed(q, Outcome(dir, q)); err != nil {
			return err
		}
	}
	for _, q := range open {
		if _, seen := known[q.ID]; seen {
			continue
		}
		known[q.ID] = q
		if err := w.Opened(q); err != nil {
			return err
		}
	}
	return nil
}

// changesOf returns a channel that has a value when the directory may have
// changed.
func changesOf(dir string) (changes <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	out, ended := make(chan struct{}, 1), make(chan struct{})
	notices, interval := (<-chan struct{})(nil), lookInterval
	files, err := filewatch.New(ctx, filepath.Join(dir, "any"+questionSuffix))
	if err == nil {
		notices, interval = files.Changes(), aliveInterval
	}
	go func() {
		defer close(ended)
		forward(ctx, notices, interval, out)
		if files != nil {
			files.Close() // nothing was written
		}
	}()
	return out, func() { cancel(); <-ended }
}

// forward puts a value into out for each notice, and one after each interval.
func forward(ctx context.Context, notices <-chan struct{}, interval time.Duration, out chan<- struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-notices:
			if !ok {
				notices = nil // the context ends it, too
			}
		case <-tick.C:
		}
		select {
		case out <- struct{}{}:
		default: // it will look anyway
		}
	}
}
