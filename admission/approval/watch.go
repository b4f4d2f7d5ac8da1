package approval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/internal/filewatch"
)

// lookInterval is the polling interval of a watcher if the kernel does not report changes of the
// directory, and aliveInterval the interval in any case, because a process that dies changes no
// file.
const (
	lookInterval  = 150 * time.Millisecond
	aliveInterval = 5 * time.Second
	nodesInterval = time.Second // in a cluster, whose other nodes change no file
)

// Watcher is notified of the questions of all Airlocks of a directory. Its methods are called
// sequentially.
type Watcher interface {
	// Opened is called once for each question that is open or is opened.
	Opened(q Posted) error
	// Closed is called when a question is closed. outcome is a sentence.
	Closed(q Posted, outcome string) error
}

// Watch notifies w of each question until ctx ends, and then returns nil. others returns the open questions of other
// nodes of a cluster; nil: there are none. If it fails, the last ones count.
func Watch(ctx context.Context, dir string, others func() ([]Posted, error), w Watcher) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("watching approvals: %w", err)
	}
	interval := aliveInterval
	if others != nil {
		interval = nodesInterval
	}
	changes, stop := changesOf(dir, interval)
	defer stop()
	known := map[string]Posted{}
	var more []Posted
	for {
		if others != nil {
			if now, err := others(); err == nil {
				more = now
			}
		}
		if err := compare(dir, known, more, w); err != nil {
			return fmt.Errorf("watching approvals: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		}
	}
}

// compare notifies w of the changes since known, and updates known.
func compare(dir string, known map[string]Posted, more []Posted, w Watcher) error {
	open, err := List(dir)
	if err != nil {
		return err
	}
	open = append(open, more...)
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

// changesOf returns a channel that receives a value when the directory may have changed, and at least after each
// interval alive.
func changesOf(dir string, alive time.Duration) (changes <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	out, ended := make(chan struct{}, 1), make(chan struct{})
	notices, interval := (<-chan struct{})(nil), lookInterval
	files, err := filewatch.New(ctx, filepath.Join(dir, "any"+questionSuffix))
	if err == nil {
		notices, interval = files.Changes(), alive
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

// forward sends a value to out for each notice, and one after each interval.
func forward(ctx context.Context, notices <-chan struct{}, interval time.Duration, out chan<- struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-notices:
			if !ok {
				notices = nil // ctx still ends the loop
			}
		case <-tick.C:
		}
		select {
		case out <- struct{}{}:
		default: // the receiver will look anyway
		}
	}
}
