package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/audit/witness"
	files "github.com/airlock-mcp/airlock/internal/store"
)

// WitnessOptions configure the witness of a log's checkpoints.
type WitnessOptions struct {
	// Address is the address of the witness, as described at witness.Open.
	Address string
	// Key is the public key of an HTTP witness.
	Key string
	// Witness is used instead of Address if it is not nil. It must check that a log only grows, and needs only its
	// newest checkpoint. A log has at most one.
	Witness witness.Witness
	// Delay is how long calls are allowed while a kept checkpoint waits for the witness.
	// 0 means that each call waits until the witness has a checkpoint with its intent.
	Delay time.Duration
}

func (o WitnessOptions) strict() bool { return o.Delay == 0 }

// checks reports whether the witness checks that the log only grows.
func (o WitnessOptions) checks() bool { return o.Witness != nil || witness.IsHTTP(o.Address) }

// retryWitness is the interval between attempts.
const retryWitness = 2 * time.Second

// closeTimeout bounds the last attempt.
const closeTimeout = 5 * time.Second

// submitter submits the kept checkpoints of a log to its witness. If several processes share a
// log, one of them submits for all. The submitted state is stored beside the keys, so that a
// restart continues from there.
type submitter struct {
	places  places
	opts    WitnessOptions
	witness witness.Witness
	key     verifyingKey
	now     func() time.Time
	wake    chan struct{} // capacity 1; signals that there may be new checkpoints
	stop    context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended

	read keptSoFar // of the goroutine that makes attempts

	mu       sync.Mutex // guards all below
	progress progress
	waiting  time.Time     // when the oldest waiting checkpoint was signed; zero if none waits
	noticed  time.Time     // when this process noticed that: a clock that is set back has no effect on it
	failure  error         // of the last attempt
	attempts uint64        // that have ended
	changed  chan struct{} // closed after each attempt
}

// progress is the progress of a witness: the last checkpoint that it has received.
type progress struct {
	number uint64 // of the kept checkpoint, from 1; 0 for none
	size   uint64 // how many records it covers
	note   []byte // with the witness's signatures
}

// newSubmitter returns a submitter, which makes one attempt before it continues in the
// background.
func newSubmitter(at places, o WitnessOptions, key verifyingKey, now func() time.Time) (*submitter, error) {
	w := o.Witness
	if w == nil {
		var err error
		if w, err = witness.Open(o.Address, o.Key); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &submitter{
		places: at, opts: o, witness: w, key: key, now: now, stop: stop,
		wake: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
	}
	err := c.attempt(ctx)
	if err == nil {
		err = c.recall(ctx)
	}
	if errors.Is(err, witness.ErrConflict) {
		stop()
		return nil, err
	}
	go c.run(ctx)
	return c, nil
}

func (c *submitter) run(ctx context.Context) {
	defer close(c.done)
	retry := time.NewTicker(retryWitness)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-retry.C:
		}
		_ = c.attempt(ctx) // kept for those who wait, and for late
	}
}

// look makes the submitter look for kept checkpoints now.
func (c *submitter) look() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// close makes a last attempt. Checkpoints that the witness does not accept are submitted
// again at the next start.
func (c *submitter) close() error {
	c.stop()
	<-c.done
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := c.attempt(ctx); errors.Is(err, witness.ErrConflict) {
		return err
	}
	return nil
}

// attempt submits all waiting checkpoints and records the result.
func (c *submitter) attempt(ctx context.Context) error {
	state, waiting, err := c.submit(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress, c.waiting, c.failure = state, waiting, err
	switch {
	case waiting.IsZero():
		c.noticed = time.Time{}
	case c.noticed.IsZero():
		c.noticed = c.now()
	}
	c.attempts++
	close(c.changed)
	c.changed = make(chan struct{})
	return err
}

// recall checks whether the witness knows more records than the log has. That detects a log that
// was restored together with its keys and its progress file, which has no new checkpoint to submit.
func (c *submitter) recall(ctx context.Context) error {
	kept, err := c.kept()
	if err != nil || kept.last() == 0 {
		return err
	}
	newest := kept.get(kept.last())
	if c.opts.checks() {
		_, err := c.witness.Submit(ctx, c.toSubmit(&newest))
		if errors.Is(err, witness.ErrConflict) {
			if again, readErr := c.kept(); readErr == nil && again.last() > kept.last() {
				return nil // another process has submitted a newer one meanwhile
			}
		}
		return err
	}
	path, ok := witness.File(c.opts.Address)
	if !ok {
		return nil // a syslog server returns nothing
	}
	notes, err := witness.Stored(path, newest.origin)
	if err != nil {
		return err // it may be allowed to append only
	}
	again, err := c.kept() // includes the checkpoints that other processes have submitted meanwhile
	if err != nil {
		return err
	}
	newest = again.get(again.last())
	for _, signed := range notes {
		if k, err := openCheckpoint(signed, c.key); err == nil && k.origin == newest.origin && k.size > newest.size {
			return fmt.Errorf("%w: it has a checkpoint of record %d, and the newest here is of %d", witness.ErrConflict,
				k.size, newest.size)
		}
	}
	return nil
}

func (c *submitter) progressFile() string {
	if c.opts.Witness != nil {
		return c.places.progressFile(ofCluster)
	}
	return c.places.progressFile(ofWitness)
}

// The names of the files with the progress of witnesses.
const (
	ofWitness = "witnessed"
	ofCluster = "clustered" // of WitnessOptions.Witness
)

// progressFile returns the path of the file with the progress of a witness.
func (p places) progressFile(name string) string {
	return strings.Replace(p.position, "position", name, 1)
}

func (c *submitter) toSubmit(k *checkpoint) witness.Checkpoint {
	return witness.Checkpoint{Size: k.size, Root: k.root, Note: k.signed, Key: c.key.named(k.origin),
		Prove: c.prover(k.size)}
}

// submit submits the kept checkpoints that the witness does not have. waiting is the time of
// the oldest one that it still does not have.
func (c *submitter) submit(ctx context.Context) (state progress, waiting time.Time, err error) {
	lock, err := files.Acquire(ctx, c.progressFile()+".lock", files.Exclusive)
	if err != nil {
		return c.last(), c.oldest(), err
	}
	defer lock.Release()
	if state, err = readBrought(c.progressFile()); err != nil {
		return state, c.oldest(), err
	}
	if state.number < c.read.forgotten {
		c.read = keptSoFar{} // the progress was put back
	}
	kept, err := c.kept()
	if err != nil {
		return state, c.oldest(), err
	}
	defer func() { c.read.forget(state.number) }()
	for number := state.number + 1; number <= kept.last(); number++ {
		k := kept.get(number)
		if k.legacy != "" || c.opts.checks() && number < kept.last() {
			continue // the newest covers the older ones
		}
		cosigned, err := c.witness.Submit(ctx, c.toSubmit(&k))
		if errors.Is(err, witness.ErrConflict) {
			if again, readErr := c.kept(); readErr == nil && again.last() > kept.last() {
				kept, number = again, number-1 // a verification has shown the witness a newer one
				continue
			}
		}
		if err != nil {
			return state, c.signedTime(kept.get(state.number + 1)), err
		}
		if cosigned == nil {
			cosigned = k.signed
		}
		state = progress{number, k.size, cosigned}
		if err := state.write(c.progressFile()); err != nil {
			return state, c.signedTime(k), err
		}
	}
	return state, time.Time{}, nil
}

func (c *submitter) last() progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.progress
}

// oldest returns the time since which the witness has been behind, if it could not be reached.
func (c *submitter) oldest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting.IsZero() {
		return c.now()
	}
	return c.waiting
}

// signedTime is the time of a checkpoint's newest record.
func (c *submitter) signedTime(k checkpoint) time.Time {
	t, err := time.Parse(time.RFC3339, k.time)
	if err != nil {
		return c.oldest()
	}
	return t
}

// keptSoFar are the kept checkpoints that a submitter has read.
type keptSoFar struct {
	bytes     int64  // of the file
	forgotten uint64 // how many of the oldest are not in the list
	list      []checkpoint
}

// last returns the number of the newest checkpoint, or 0.
func (k *keptSoFar) last() uint64 { return k.forgotten + uint64(len(k.list)) }

func (k *keptSoFar) get(number uint64) checkpoint { return k.list[number-k.forgotten-1] }

// forget drops the checkpoints up to a number, except the newest.
func (k *keptSoFar) forget(number uint64) {
	if first := min(number+1, k.last()); first > k.forgotten+1 {
		k.list = slices.Clone(k.list[first-k.forgotten-1:])
		k.forgotten = first - 1
	}
}

// kept reads the checkpoints that were kept since it was called last.
func (c *submitter) kept() (keptSoFar, error) {
	f, err := openPlain(filepath.Join(c.places.dir, historyFile), os.O_RDONLY)
	if err != nil {
		return c.read, fmt.Errorf("reading the kept checkpoints: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, c.read.bytes, math.MaxInt64-c.read.bytes))
	if err != nil {
		return c.read, fmt.Errorf("reading the kept checkpoints: %w", err)
	}
	notes, _ := keptNotes(data) // one that is being written comes next time
	for _, k := range readNotes(notes, c.key) {
		if k.signed == nil {
			return c.read, errors.New("reading the kept checkpoints: one is damaged or forged")
		}
		c.read.bytes += int64(len(k.signed)) + 1
		k.signed = bytes.Clone(k.signed) // else the list would hold what was read as a whole
		c.read.list = append(c.read.list, k)
	}
	return c.read, nil
}

// prover proves consistency from the tree's file.
func (c *submitter) prover(size uint64) func(old uint64) ([]tlog.Hash, error) {
	return func(old uint64) ([]tlog.Hash, error) {
		hashes, err := openHashes(filepath.Join(c.places.dir, treeFile))
		if err != nil {
			return nil, err
		}
		defer hashes.file.Close()
		return tlog.ProveTree(int64(size), int64(old), hashes)
	}
}

// late returns an error if calls must not be made because the witness has been behind for too
// long.
func (c *submitter) late() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.failure, witness.ErrConflict) {
		return c.failure
	}
	if c.opts.Delay == 0 || c.waiting.IsZero() {
		return nil
	}
	if now := c.now(); now.Sub(c.waiting) <= c.opts.Delay && now.Sub(c.noticed) <= c.opts.Delay {
		return nil
	}
	return fmt.Errorf("its witness has not confirmed a checkpoint of %s: %w", formatTime(c.waiting), c.failure)
}

// confirm waits until the witness has a checkpoint with the record, or an
// attempt that began later has failed.
func (c *submitter) confirm(ctx context.Context, seq uint64) error {
	c.mu.Lock()
	last := c.attempts + 2 // the one under way may have begun before the record was kept
	c.mu.Unlock()
	for {
		c.look()
		c.mu.Lock()
		have, failure, attempts, changed := c.progress.size, c.failure, c.attempts, c.changed
		c.mu.Unlock()
		switch {
		case have >= seq:
			return nil
		case failure != nil && attempts >= last:
			return fmt.Errorf("its witness has not confirmed it: %w", failure)
		}
		select {
		case <-changed:
		case <-c.done:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// submitters are those of all witnesses of a log.
type submitters []*submitter

// look makes each submitter look for kept checkpoints now.
func (all submitters) look() {
	for _, c := range all {
		c.look()
	}
}

// late returns an error if one of the witnesses has been behind for too long.
func (all submitters) late() error {
	for _, c := range all {
		if err := c.late(); err != nil {
			return err
		}
	}
	return nil
}

// confirm waits until each witness that calls wait for has a checkpoint with the record.
func (all submitters) confirm(ctx context.Context, seq uint64) error {
	for _, c := range all {
		if !c.opts.strict() {
			continue
		}
		if err := c.confirm(ctx, seq); err != nil {
			return err
		}
	}
	return nil
}

func (all submitters) close() error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

const broughtTop = "airlock audit witness"

func (b progress) write(path string) error {
	return files.WriteFile(path, fmt.Appendf(nil, "%s\n%d %d\n%s", broughtTop, b.number, b.size, b.note), 0o600)
}

// readBrought reads the progress of the witness. It returns the zero value if the witness has
// received nothing.
func readBrought(path string) (progress, error) {
	text, err := files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return progress{}, nil
	}
	if err != nil {
		return progress{}, err
	}
	top, rest, _ := bytes.Cut(text, []byte("\n"))
	numbers, note, _ := bytes.Cut(rest, []byte("\n"))
	b := progress{note: note}
	if _, err := fmt.Sscanf(string(numbers), "%d %d", &b.number, &b.size); err != nil || string(top) != broughtTop {
		return progress{}, fmt.Errorf("%q is damaged", path)
	}
	return b, nil
}
