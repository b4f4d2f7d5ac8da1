// Package audit writes the audit log: one canonical JSON object per line, each linked to
// its predecessor by a hash, and all of them covered by a signed Merkle tree. An act is
// recorded durably before it happens, and its outcome afterwards. An act that cannot be
// recorded does not happen. See docs/audit.md.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

const (
	// defaultSegmentBytes is the size of a full file of the log.
	defaultSegmentBytes = 4 << 20
	// maxBatch is how many records one write carries.
	maxBatch = 128
)

// Options of a log. The zero value is usable.
type Options struct {
	// Keys is the directory of the key files; empty means "keys" in the log's own directory.
	// A separate directory lets a reader have the log without the keys.
	Keys string
	// SegmentBytes is the size at which a new file is begun; 0 means 4 MiB: a start reads
	// the newest file as a whole.
	SegmentBytes int64
	// ClearArguments records arguments as they are instead of as keyed hashes.
	ClearArguments bool
	// KeepArguments stores the arguments of calls, encrypted, beside the log. If nil, they are
	// not stored.
	KeepArguments *ArgumentsOptions
	// Keep is how long records are kept at least. Full files with older records are removed after
	// a signed summary of them was stored; 0 keeps all.
	Keep time.Duration
	// Witnesses are the witnesses of the checkpoints. It may be empty.
	Witnesses []WitnessOptions
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// ErrClosed is returned by appends after Close.
var ErrClosed = errors.New("the audit log is closed")

// Log is an open audit log. Several processes can open one directory: they write batches in
// turn, to one chain. A Log is safe for concurrent use.
type Log struct {
	opts      Options
	hasher    hasher
	witnesses submitters
	kept      *argumentStore // nil if arguments are not kept
	commits   *committer
}

// Open opens the log in dir, creating it on first use. It removes a half-written record of a
// crash, and records the end of acts that dead processes left unfinished. It returns an error
// if the log cannot be written: without a record nothing may happen.
func Open(dir string, opts *Options) (*Log, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.SegmentBytes < 0 {
		return nil, fmt.Errorf("opening audit log %q: a segment of %d bytes is not possible", dir, o.SegmentBytes)
	}
	s, err := openAppender(dir, o)
	if err != nil {
		return nil, fmt.Errorf("opening audit log %q: %w", dir, err)
	}
	l := &Log{opts: o, hasher: s.hasher}
	if o.KeepArguments != nil {
		if l.kept, err = openArguments(s.places, s.writer.id, *o.KeepArguments, o.Now); err != nil {
			return nil, errors.Join(fmt.Errorf("opening audit log %q: %w", dir, err), s.close())
		}
	}
	for _, w := range o.Witnesses {
		submitter, err := newSubmitter(s.places, w, s.key.public, o.Now)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening audit log %q: %w", dir, err), l.witnesses.close(), s.close())
		}
		l.witnesses = append(l.witnesses, submitter)
	}
	l.commits = newCommitter(s, l.witnesses)
	return l, nil
}

// Append writes a record and returns when it is on stable storage. If it returns an error, the
// record is not in the log, and the announced act must not happen. Cancelling ctx has an
// effect only before the record is passed to the writer.
func (l *Log) Append(ctx context.Context, r Record) error {
	began := time.Now()
	err := l.submit(ctx, r, true)
	failed := ""
	if err != nil {
		failed = "unrecorded"
	}
	telemetry.Append.Record(ctx, time.Since(began), failed)
	return err
}

// Note writes a record and returns when it is in the file. It then survives the end of the
// process; it survives a crash of the machine soon after, or with the next Append. Note is for
// past events, so cancelling ctx is ignored, and if it returns an error, the record is kept
// and written before any later one.
func (l *Log) Note(ctx context.Context, r Record) error {
	return l.submit(context.WithoutCancel(ctx), r, false)
}

// NoteSoon passes on a record of a past event and returns at once. The record is written before any that is passed
// on later, and within 5 ms. If the process is killed before, it is lost, so NoteSoon is for outcomes of acts: an
// act without one is recorded as unknown by the next start. If records cannot be written, NoteSoon returns an
// error or the next Append does, and the record is kept as by Note.
func (l *Log) NoteSoon(r Record) error {
	if err := l.commits.addSoon(l.complete(r)); err != nil {
		return fmt.Errorf("recording %s: %w", r.Kind, err)
	}
	return nil
}

// NoteKept is Note for a record that the caller keeps on stable storage until Sync has returned nil.
// If the log has witnesses, it waits for them like Append.
func (l *Log) NoteKept(ctx context.Context, r Record) error {
	return l.submit(context.WithoutCancel(ctx), r, len(l.witnesses) > 0)
}

// Sync returns when all records that are in the file are on stable storage.
func (l *Log) Sync() error { return l.commits.appender.disk.sync() }

func (l *Log) submit(ctx context.Context, r Record, durable bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("recording %s: %w", r.Kind, err)
	}
	if durable {
		if err := l.witnesses.late(); err != nil {
			return fmt.Errorf("recording %s: %w", r.Kind, err)
		}
	}
	result := l.commits.add(l.complete(r), durable)
	if result.err == nil && durable {
		result.err = l.witnesses.confirm(ctx, result.last)
	}
	if result.err != nil {
		return fmt.Errorf("recording %s: %w", r.Kind, result.err)
	}
	return nil
}

// complete adds the time, and stores the arguments beside the log.
func (l *Log) complete(r Record) Record {
	r.Time = formatTime(l.opts.Now())
	if l.kept != nil && len(r.Values) > 0 {
		// If this fails, the call continues: its record has everything that is required.
		_ = l.kept.put(keptArguments{r.RunID, r.CallID, r.Values})
	}
	r.Values = nil
	return r
}

// strict reports whether each call waits for a witness.
func (o *Options) strict() bool { return slices.ContainsFunc(o.Witnesses, WitnessOptions.strict) }

// Hash returns the keyed hash of bytes: "hmac-sha256:" and 64 hex digits. Equal
// bytes have equal hashes within one log's key.
func (l *Log) Hash(b []byte) string { return l.hasher.sum(b) }

// Arguments returns the recorded form of a call's decoded arguments: a keyed hash of each
// value, or the value if Options.ClearArguments is set. It returns nil if there are too many.
func (l *Log) Arguments(v any) json.RawMessage {
	if !l.opts.ClearArguments {
		return l.hasher.shape(v)
	}
	text, err := json.Marshal(v)
	if err != nil || len(text) > maxLine/2 {
		return nil
	}
	return text
}

// Close writes what is left, makes it durable and releases the log. Calling it
// twice is fine.
func (l *Log) Close() error {
	if already := l.commits.close(); already {
		return nil
	}
	err := errors.Join(l.commits.appender.close(), l.witnesses.close())
	if l.kept != nil {
		err = errors.Join(err, l.kept.close())
	}
	return err
}

// newWriterID names this process in the records it writes.
func newWriterID() string { return telemetry.NewID("w") }
