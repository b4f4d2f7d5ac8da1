package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// lookInterval is how often the directory is looked at for an answer.
const lookInterval = 150 * time.Millisecond

// maxOpen is how many questions one Airlock has open at a time: a person who is
// asked more than that no longer reads.
const maxOpen = 64

// grantLifetime is how long at most a grant for a run holds.
const grantLifetime = time.Hour

// Options of a desk. The zero value is usable.
type Options struct {
	// Wait keeps questions open for `airlock approvals` also when nobody can be
	// seen to listen: no asker for the session, and no `approvals watch`.
	Wait bool
	// HostPID is the process of the agent's host, from within which nobody can
	// approve; 0: there is no host.
	HostPID int
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// Desk holds the open questions of one Airlock process. Several processes may
// share a directory. All methods may be called concurrently.
type Desk struct {
	dir  string
	opts Options

	mu     sync.Mutex // guards all below
	askers map[string]Asker
	grants map[grant]time.Time // until when
	open   int
}

var _ Asker = (*Desk)(nil)

// grant is what a Yes for a run extends to.
type grant struct {
	principal, run, server, tool, definition, code, policy string
}

func grantOf(q Question) grant {
	return grant{q.Principal, q.RunID, q.ServerID, q.ToolName, q.DefinitionDigest, q.CodeHash, q.PolicyVersion}
}

// OpenDesk opens the directory of questions, creating it at first use, and removes
// those of processes that have died.
func OpenDesk(dir string, opts *Options) (*Desk, error) {
	d := &Desk{dir: dir, askers: map[string]Asker{}, grants: map[grant]time.Time{}}
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.Logger == nil {
		d.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if d.opts.Now == nil {
		d.opts.Now = time.Now
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the approvals in %q: %w", dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the approvals in %q: %w", dir, err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("opening the approvals in %q: others can write there (mode %04o): chmod 700 it", dir, info.Mode().Perm())
	}
	if err := d.sweep(); err != nil {
		return nil, fmt.Errorf("opening the approvals in %q: %w", dir, err)
	}
	return d, nil
}

// sweep removes the questions, answers and marks of dead processes. That they
// were asked is in the audit log.
func (d *Desk) sweep() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		path := filepath.Join(d.dir, entry.Name())
		switch name := entry.Name(); {
		case strings.HasSuffix(name, questionSuffix), strings.HasPrefix(name, watcherPrefix):
			if !store.IsHeld(path) {
				errs = append(errs, removeIfThere(path))
			}
		case strings.HasSuffix(name, answerSuffix):
			if !store.IsHeld(strings.TrimSuffix(path, answerSuffix) + questionSuffix) {
				errs = append(errs, removeIfThere(path))
			}
		}
	}
	return errors.Join(errs...)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Register names the channel through which the people of one session of the
// host are asked, until the returned function is called.
func (d *Desk) Register(sessionID string, a Asker) (unregister func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.askers[sessionID] = a
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.askers, sessionID)
	}
}

// Ask puts the question to whoever can answer it, and returns the first answer.
// Every call is asked for anew; only a grant that a person gave for the run
// answers by itself, and says so.
func (d *Desk) Ask(ctx context.Context, q Question) (Verdict, error) {
	if by, ok := d.granted(q); ok {
		return Verdict{Answer: Yes, By: by}, nil
	}
	asker, ok := d.admit(q)
	if !ok {
		return Verdict{Answer: Nobody}, nil
	}
	defer d.leave()
	q.HostPID = d.opts.HostPID
	data, err := json.Marshal(q)
	if err != nil {
		return Verdict{}, fmt.Errorf("asking question %q: %w", q.ID, err)
	}
	path := filepath.Join(d.dir, q.ID+questionSuffix)
	held, err := store.CreateHeld(path, data, 0o600)
	if err != nil {
		return Verdict{}, fmt.Errorf("asking question %q: %w", q.ID, err)
	}
	defer d.close(q.ID, held)
	verdict, err := d.await(ctx, q, canon.Digest(data), asker)
	if err == nil && verdict.Answer == Yes && verdict.ForRun {
		d.remember(q)
	}
	return verdict, err
}

// admit finds who can be asked, and counts the question as open.
func (d *Desk) admit(q Question) (Asker, bool) {
	watched := d.opts.Wait || d.isWatched()
	d.mu.Lock()
	defer d.mu.Unlock()
	asker := d.askers[q.SessionID]
	if d.open >= maxOpen || (asker == nil && !watched) {
		return nil, false
	}
	d.open++
	return asker, true
}

func (d *Desk) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
}

// close takes the question back: an answer that comes later finds nothing.
func (d *Desk) close(id string, held *store.Lock) {
	err := errors.Join(
		removeIfThere(filepath.Join(d.dir, id+questionSuffix)),
		removeIfThere(filepath.Join(d.dir, id+answerSuffix)),
		held.Release(),
	)
	if err != nil {
		d.opts.Logger.WarnContext(context.Background(), "a question could not be removed", slog.Any(telemetry.KeyError, err))
	}
}

// await waits for the first of: an answer through the asker, an answer in the
// directory, the end of the question's time, the end of ctx.
func (d *Desk) await(ctx context.Context, q Question, digest string, asker Asker) (Verdict, error) {
	asking, stop := context.WithDeadline(ctx, q.Expires)
	spoken := make(chan Verdict, 1)
	var speaking sync.WaitGroup
	defer speaking.Wait()
	defer stop()
	if asker != nil {
		speaking.Go(func() {
			v, err := asker.Ask(asking, q)
			if err != nil {
				if asking.Err() == nil {
					d.opts.Logger.WarnContext(ctx, "a person could not be asked through the host", slog.Any(telemetry.KeyError, err))
				}
				return
			}
			spoken <- v
		})
	}
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case v := <-spoken:
			return v, nil
		case <-asking.Done():
			if err := ctx.Err(); err != nil {
				return Verdict{}, err
			}
			return Verdict{Answer: Expired}, nil
		case <-tick.C:
			if v, ok := d.look(ctx, q.ID, digest); ok {
				return v, nil
			}
			if by, ok := d.granted(q); ok { // given to a call that was asked for at the same time
				return Verdict{Answer: Yes, By: by}, nil
			}
		}
	}
}

// look reads the answer's file, if there is one. A bad one is thrown away: it
// is not an answer to this question.
func (d *Desk) look(ctx context.Context, id, digest string) (Verdict, bool) {
	path := filepath.Join(d.dir, id+answerSuffix)
	data, err := readOwn(path)
	if errors.Is(err, os.ErrNotExist) {
		return Verdict{}, false
	}
	var v Verdict
	if err == nil {
		v, err = parseReply(data, digest)
	}
	if err != nil {
		d.opts.Logger.WarnContext(ctx, "an answer was thrown away", slog.String("question_id", id), slog.Any(telemetry.KeyError, errors.Join(err, removeIfThere(path))))
		return Verdict{}, false
	}
	return v, true
}

func (d *Desk) remember(q Question) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grants[grantOf(q)] = d.opts.Now().Add(grantLifetime)
}

// granted says whether a person has extended an earlier Yes to this call.
func (d *Desk) granted(q Question) (by string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.opts.Now()
	for g, until := range d.grants {
		if !now.Before(until) {
			delete(d.grants, g)
		}
	}
	_, ok = d.grants[grantOf(q)]
	return "grant for this run", ok
}

func sortByTime(open []Posted) {
	slices.SortFunc(open, func(a, b Posted) int {
		return cmp.Or(a.Question.Asked.Compare(b.Question.Asked), cmp.Compare(a.ID, b.ID))
	})
}
