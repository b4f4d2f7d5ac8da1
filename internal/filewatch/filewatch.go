// Package filewatch reports changes of files. It uses the kernel's notifications and does
// not poll. It is the only importer of fsnotify.
package filewatch

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Settle is how long a change waits for those that follow at once: an editor
// writes a file in several steps.
const Settle = 100 * time.Millisecond

// Watcher watches the directories of files.
type Watcher struct {
	notify  *fsnotify.Watcher
	changes chan struct{}
	done    chan struct{}
}

// New watches the named files, which need not exist, until ctx is done or the watcher is
// closed. It watches their directories and the directories of symbolic links' targets,
// because editors replace files. Changes of other files in these directories are reported
// too: the receiver must check whether anything relevant has changed.
func New(ctx context.Context, files ...string) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching files: %w", err)
	}
	for _, directory := range directoriesOf(files) {
		if err := notify.Add(directory); err != nil {
			notify.Close() // the first error is more useful
			return nil, fmt.Errorf("watching the directory %q: %w", directory, err)
		}
	}
	w := &Watcher{notify: notify, changes: make(chan struct{}, 1), done: make(chan struct{})}
	go w.run(ctx)
	return w, nil
}

// Changes receives after each change; several that follow each other may be one.
// It is closed when the watcher is.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Close ends the watcher and returns when nothing of it runs. Calling it twice
// is fine.
func (w *Watcher) Close() error {
	err := w.notify.Close()
	<-w.done
	return err
}

// run passes changes on until the watcher ends.
func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	defer close(w.changes)
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if settled == nil && event.Op != fsnotify.Chmod {
				settled = time.After(Settle)
			}
		case _, ok := <-w.notify.Errors: // some events were lost
			if !ok {
				return
			}
			settled = time.After(0)
		case <-settled:
			settled = nil
			select {
			case w.changes <- struct{}{}:
			default: // one is on its way already
			}
		}
	}
}

// directoriesOf returns the directories to watch, each once.
func directoriesOf(files []string) []string {
	var directories []string
	for _, file := range files {
		directories = append(directories, filepath.Dir(file))
		if target, err := filepath.EvalSymlinks(file); err == nil {
			directories = append(directories, filepath.Dir(target))
		}
	}
	slices.Sort(directories)
	return slices.Compact(directories)
}
