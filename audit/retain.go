package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

const (
	// retainEvery is how often an open log looks for files that are too old.
	retainEvery = time.Hour
	// maxRemoved is the number of files that are removed at once: others wait meanwhile.
	maxRemoved = 16
	// filesPerPeriod is how many files the records of Options.Keep fill at least, so that a log with
	// few records is removed in parts.
	filesPerPeriod = 10
)

// retain removes the full files whose newest record is older than Options.Keep. Before that, it
// records the removal in the log, signs it, and stores a signed summary. The caller must hold the
// log's lock, and must have caught up.
func (s *appender) retain() error {
	if s.opts.Keep <= 0 {
		return nil
	}
	now := s.opts.Now()
	if now.Sub(s.retained) < retainEvery {
		return nil
	}
	s.retained = now
	if err := s.retainUntil(now.Add(-s.opts.Keep)); err != nil {
		return fmt.Errorf("removing old records: %w", err)
	}
	return nil
}

func (s *appender) retainUntil(oldest time.Time) error {
	e := readEvidence(s.places.dir, "", s.key.public)
	if len(e.findings) > 0 {
		return errors.New(e.findings[0].Text)
	}
	if err := s.finishRemoval(&e); err != nil {
		return err
	}
	if err := s.endOldFile(oldest.Add(s.opts.Keep - s.opts.Keep/filesPerPeriod)); err != nil {
		return err
	}
	list, err := segments(s.places.dir)
	if err != nil {
		return err
	}
	r, paths, err := s.summary(&e, list, oldest)
	if err != nil {
		return err
	}
	if len(paths) == maxRemoved {
		s.retained = time.Time{} // there are more
	}
	if len(paths) == 0 {
		return nil
	}
	if err := s.append([]Record{{Kind: KindRemoved, Time: s.now(), Detail: r.String()}}); err != nil {
		return err
	}
	if err := s.keepCheckpoint(); err != nil { // the record is durable and signed
		return err
	}
	if err := s.keepRemoval(&e, r); err != nil {
		return err
	}
	return s.finishRemoval(&e)
}

// endOldFile begins a new file if the oldest record of the active one was written before a time.
func (s *appender) endOldFile(before time.Time) error {
	oldest, err := firstTime(s.files.active.Name())
	if err != nil || oldest.IsZero() || !oldest.Before(before) {
		return err
	}
	return s.rotate()
}

// summary returns a summary of the files whose newest record is from before a time, and their
// paths. The active file, and those with records of other living processes, are not among them.
func (s *appender) summary(e *evidence, list []segment, before time.Time) (*Removal, []string, error) {
	r := &Removal{Origin: s.sign.origin, First: list[0].first, Removed: s.now(), Kinds: map[Kind]int{},
		Results: map[string]int{}}
	roots := map[uint64]tlog.Hash{}
	e.checkpoints(func(_ string, c *checkpoint) {
		if c.legacy == "" {
			roots[c.size] = c.root
		}
	})
	if last := e.removed(); last != nil {
		r.Hash, r.Last, r.Tree = last.Hash, last.Last, slices.Clone(last.Tree)
	} else if r.First > 1 { // earlier files were moved away
		known, ok := s.files.tree.at(r.First-1, roots[r.First-1])
		if !ok {
			return nil, nil, nil
		}
		r.Last, r.Tree = known.size, known.roots
	}
	needed, err := s.oldestNeeded()
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	for i := 0; i+1 < len(list) && len(paths) < maxRemoved; i++ {
		next := list[i+1]
		newest, err := lastTime(list[i].path)
		if err != nil {
			return nil, nil, err
		}
		if newest.IsZero() || !newest.Before(before) || next.first > needed {
			break
		}
		if err := r.summarize(list[i], next.first, roots); err != nil {
			return nil, nil, err
		}
		paths = append(paths, list[i].path)
	}
	return r, paths, nil
}

// oldestNeeded returns the number of the oldest record that another living process can have to
// read: an Airlock that is idle continues in the file that it has open.
func (s *appender) oldestNeeded() (uint64, error) {
	needed := s.end.next
	entries, err := os.ReadDir(s.places.writers)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		path := filepath.Join(s.places.writers, entry.Name())
		text, err := store.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || entry.Name() == s.writer.id || !lives(path, string(text)) {
			continue
		}
		first, _, _ := strings.Cut(string(text), "\n")
		from, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			return 0, nil // it is starting
		}
		needed = min(needed, from)
	}
	return needed, nil
}

// keepRemoval stores the signed summary.
func (s *appender) keepRemoval(e *evidence, r *Removal) error {
	signed, err := r.sign(&s.key)
	if err != nil {
		return err
	}
	f, err := openPlain(filepath.Join(s.places.dir, removalsFile), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(e.cut); err != nil {
		return err
	}
	if _, err := f.WriteAt(append(signed, '\n'), e.cut); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), syncDirectory(s.places.dir)); err != nil {
		return err
	}
	e.cut += int64(len(signed)) + 1
	e.removals = append(e.removals, r)
	return nil
}

// finishRemoval removes the files that signed summaries cover, the oldest first. A process that is
// killed meanwhile leaves some of them to the next one.
func (s *appender) finishRemoval(e *evidence) error {
	last := e.removed()
	if last == nil {
		return nil
	}
	if s.at.first <= last.Last {
		next := s.at
		next.first = last.Last + 1
		if err := s.writePosition(next); err != nil {
			return err
		}
	}
	list, err := segments(s.places.dir)
	if err != nil {
		return err
	}
	for i, seg := range list {
		if i+1 == len(list) || list[i+1].first > last.Last+1 {
			break
		}
		if err := os.Remove(indexPath(seg.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Remove(seg.path); err != nil {
			return err
		}
	}
	return syncDirectory(s.places.dir)
}

// errFirst ends the reading of a file after its first line.
var errFirst = errors.New("the first line")

// firstTime returns the time of the first record of a file, or the zero time if it has none.
func firstTime(path string) (first time.Time, err error) {
	err = eachLine(path, 0, func(_ int, line []byte) error {
		if first, err = timeOf(line, ""); err != nil {
			return err
		}
		return errFirst
	})
	if errors.Is(err, errFirst) {
		err = nil
	}
	return first, err
}

// lastTime returns the time of the last record of a full file, except the one that ends it: that can
// be much newer.
func lastTime(path string) (last time.Time, err error) {
	err = eachLineBackward(path, nil, func(line []byte) (bool, error) {
		last, err = timeOf(line, KindRotate)
		return last.IsZero(), err
	})
	return last, err
}

// timeOf returns the time of a record, or the zero time if the record is of the ignored kind.
func timeOf(line []byte, ignored Kind) (time.Time, error) {
	var b Brief
	if strictjson.UnmarshalOpen(line, &b) != nil {
		return time.Time{}, errNoRecord
	}
	if b.Kind == ignored {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, b.Time)
}
