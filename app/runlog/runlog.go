// Package runlog lists and shows runs from the audit log, with their recordings and attached files.
package runlog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/redact"
)

// maxIndexed is how many runs of the audit log a Log lists, the newest ones.
const maxIndexed = 10_000

// Log is an index of the runs in the audit log. Each call reads only the new records. Its
// methods are safe for concurrent use.
type Log struct {
	directories setup.Directories
	config      *config.Config
	redactor    *redact.Redactor

	mu     sync.Mutex // guards what follows
	reader *audit.Follower
	byID   map[string]*Run
	order  []string // by their first records, oldest first
}

// New returns the runs of an audit log. The configuration determines which recordings and
// files of them are kept. redactor knows the credentials that shown arguments must not have.
func New(directories setup.Directories, c *config.Config, redactor *redact.Redactor) *Log {
	return &Log{directories: directories, config: c, redactor: redactor,
		reader: audit.NewFollower(directories.Audit, `"kind":"run_`), byID: map[string]*Run{}}
}

// refreshLocked reads what is new in the log.
func (l *Log) refreshLocked() error {
	return l.reader.Advance(func(r audit.Record) error {
		run := l.byID[r.RunID]
		if run == nil {
			run = &Run{ID: r.RunID, State: Unfinished}
			l.byID[r.RunID] = run
			l.order = append(l.order, r.RunID)
		}
		switch r.Kind {
		case audit.KindRunStart:
			run.start(r)
		case audit.KindRunSuspend:
			run.suspend(r)
		case audit.KindRunResume:
			run.resume()
		case audit.KindRunEnd:
			run.end(r)
		}
		if excess := len(l.order) - maxIndexed; excess >= maxIndexed/10 {
			for _, id := range l.order[:excess] {
				delete(l.byID, id)
			}
			l.order = slices.Delete(l.order, 0, excess)
		}
		return nil
	})
}

// List returns at most n of the runs that match, newest first, without the first skip of them. more
// reports whether there are others.
func (l *Log) List(match func(Run) bool, skip, n int) (list []Run, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refreshLocked(); err != nil {
		return nil, false, err
	}
	for _, id := range slices.Backward(l.order) {
		run := *l.byID[id]
		switch {
		case !match(run):
		case skip > 0:
			skip--
		case len(list) == n:
			return list, true, nil
		default:
			list = append(list, run)
		}
	}
	return list, false, nil
}

// Limits of a search for runs by tool.
const (
	maxToolRuns = 5000
	toolBytes   = 64 << 20 // of the log are read, from its end
)

// OfTool returns the IDs of runs that have called a tool, or tried to, whose server/tool contains a
// text. Old runs may be missing.
func (l *Log) OfTool(text string) (map[string]bool, error) {
	if text == "" {
		return nil, nil
	}
	found := map[string]bool{}
	word := text[strings.LastIndex(text, "/")+1:]
	_, err := audit.Scan(l.directories.Audit, toolBytes, []string{word},
		func(b audit.Brief, record func() (audit.Record, error)) (bool, error) {
			if b.Kind != audit.KindIntent && b.Kind != audit.KindOutcome {
				return true, nil
			}
			r, err := record()
			if err != nil {
				return false, err
			}
			if strings.Contains(r.ServerID+"/"+r.ToolName, text) {
				found[r.RunID] = true
			}
			return len(found) < maxToolRuns, nil
		})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}

// Find returns a run of the log by its whole ID.
func (l *Log) Find(id string) (Run, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refreshLocked(); err != nil {
		return Run{}, false, err
	}
	run, ok := l.byID[id]
	if !ok {
		return Run{}, false, nil
	}
	return *run, true, nil
}

// Tree returns all records of a run that Find returned, with the arguments of its calls if they are
// kept.
func (l *Log) Tree(run Run) (*audit.RunTree, error) {
	tree, err := audit.ShowFrom(l.directories.Audit, run.first, run.ID)
	if err != nil {
		return nil, err
	}
	if _, err := audit.ShowArguments(l.directories.Audit, l.directories.Keys, tree); err != nil &&
		!errors.Is(err, audit.ErrNoArgumentsKey) {
		return nil, err
	}
	Redact(tree, l.redactor)
	return tree, nil
}

// TreeOf returns a run from its records of other logs, without the arguments of its calls, or nil if there are none.
func (l *Log) TreeOf(run string, records []audit.Record) *audit.RunTree {
	tree := audit.TreesOf(records)[run]
	if tree != nil {
		Redact(tree, l.redactor)
	}
	return tree
}

// Recording returns the recording of a run.
func (l *Log) Recording(run string) (*replay.Recording, error) {
	return l.Recordings()(run)
}

// Recordings returns a function that reads the recordings of runs, for one page.
func (l *Log) Recordings() func(run string) (*replay.Recording, error) {
	return recordings(l.directories, l.config.Replay)
}

// Show returns a run with its recording. If the run has no recording, unkept is the reason.
func (l *Log) Show(tree *audit.RunTree) (shown Shown, unkept error) {
	recording, unkept := LoadRecording(l.directories, l.config.Replay, tree.ID)
	return Show(tree, recording), unkept
}

// Files returns the files that a run attached.
func (l *Log) Files(runID string) ([]attachment.File, error) {
	store, err := OpenFiles(l.directories, l.config.Attachments)
	if err != nil {
		return nil, err
	}
	return FilesOf(store, runID)
}

// CheckOwner returns an error if the recording or the files of a run, if there are any, are not those of an owner.
func (l *Log) CheckOwner(run string, owner caller.Owner) error {
	isOf := func(principal, issuer string) bool { return principal == owner.Principal && issuer == owner.Issuer }
	recording, err := l.Recording(run)
	ok := err != nil || isOf(recording.Principal, recording.Issuer)
	store, err := OpenFiles(l.directories, l.config.Attachments)
	if err != nil {
		return err
	}
	if store != nil {
		if set, err := store.Files(run); err == nil {
			ok = ok && isOf(set.Owner.Principal, set.Owner.Issuer)
		}
	}
	if !ok {
		return fmt.Errorf("the recording or the files of run %q have another owner than its records", run)
	}
	return nil
}

// File returns one file that a run has attached, or attachment.ErrNotFound.
func (l *Log) File(runID, name string) (attachment.File, []byte, error) {
	store, err := OpenFiles(l.directories, l.config.Attachments)
	if err != nil {
		return attachment.File{}, nil, err
	}
	if store == nil {
		return attachment.File{}, nil, attachment.ErrNotFound
	}
	return store.Read(runID, name)
}
