package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// places are the paths of a log's files.
type places struct {
	dir      string // the log's directory
	keys     string // the directory of keys
	position string // the log's position, beside the keys
	verified string // the files that starts have read, beside the keys
	writers  string // a file for each process that has the log open, beside the keys
}

func findPlaces(dir, keys string) (places, error) {
	if keys == "" {
		keys = filepath.Join(dir, "keys")
	}
	name, err := positionName(dir, keys)
	if err != nil {
		return places{}, err
	}
	return places{
		dir: dir, keys: keys, position: filepath.Join(keys, name),
		verified: filepath.Join(keys, fingerprintsName(name)), writers: filepath.Join(keys, writersName(name)),
	}, nil
}

// appender writes the files of a log. All but disk belongs to one goroutine at a time; other
// processes are kept out by a lock on the file "lock" in the directory.
type appender struct {
	places places
	opts   Options
	hasher hasher
	key    signingKey
	writer *writer
	files  openFiles
	index  *indexer // set by newCommitter

	end  cursorEnd
	tree tree     // over all records
	sign signing  // the signatures so far
	at   position // as it is in its file

	backlog  []Record  // outcomes that could not be written yet
	retained time.Time // when old files were looked for last

	open  unfinished // acts that this process began and has not ended
	text  []byte     // reused between writes
	place []byte     // likewise, for the position

	disk storage // may be used by several goroutines
}

// cursorEnd is the end of the log.
type cursorEnd struct {
	bytes  int64  // of the active file that are whole records
	next   uint64 // number of the next record
	prev   string // hash of the last record
	time   string // of the last record
	sealed bool   // the last record was KindRotate
}

// mark is the last record.
func (e cursorEnd) mark() mark {
	if e.next <= 1 {
		return mark{}
	}
	return mark{e.next - 1, e.prev}
}

// advance moves on to a record.
func (e *cursorEnd) advance(r Record) {
	e.next, e.prev, e.time, e.sealed = r.Seq+1, r.Hash, r.Time, r.Kind == KindRotate
}

// locked runs do while no other process can write, if the log is still the one
// that was opened.
func (s *appender) locked(do func() error) error {
	return files.WithLock(s.files.lock, files.Exclusive, func() error {
		if err := s.files.inPlace(s.places); err != nil {
			return err
		}
		return do()
	})
}

// write appends the backlog and a batch, either completely or not at all. The records are not
// yet durable when it returns.
func (s *appender) write(batch []request) error {
	if err := s.disk.failed(); err != nil {
		s.keep(batch)
		return err
	}
	records := s.backlog
	for _, r := range batch {
		records = append(records, r.record)
	}
	err := s.locked(func() error {
		if err := s.catchUp(); err != nil {
			return err
		}
		return s.put(records)
	})
	if err != nil {
		s.keep(batch)
		return err
	}
	s.backlog = nil
	return nil
}

// checkpoint makes the log durable and keeps a checkpoint of it.
func (s *appender) checkpoint() error {
	return s.locked(func() error {
		if err := s.catchUp(); err != nil {
			return err
		}
		if err := s.keepCheckpoint(); err != nil {
			return err
		}
		// A file that is not as it was signed is kept: verify reports it, and the next start fails.
		_ = s.retain()
		return nil
	})
}

// keep adds the records of past events to the backlog, for the next write.
func (s *appender) keep(batch []request) {
	for _, r := range batch {
		if !r.durable {
			s.backlog = append(s.backlog, r.record)
		}
	}
}

// put writes records at the end of the active segment. On an error the file is
// as it was before, or ends in a line that the next writer cuts off.
func (s *appender) put(records []Record) error {
	for part := range slices.Chunk(records, maxBatch) {
		if s.end.bytes >= s.opts.SegmentBytes {
			if err := s.rotate(); err != nil {
				return err
			}
		}
		if err := s.append(part); err != nil {
			return err
		}
	}
	return nil
}

// append writes at most maxBatch records: their position first, then them, then
// their hashes in the tree.
func (s *appender) append(records []Record) error {
	if s.end.next-1+uint64(len(records)) > s.sign.synced+maxUnsigned {
		if err := s.settle(); err != nil {
			return err
		}
		if err := s.syncSignature(); err != nil {
			return err
		}
	}
	text, end, leaves := s.text[:0], s.end, s.tree.clone()
	next := s.at
	next.boot, next.base, next.pending = bootID(), s.end.mark(), nil
	var stored []tlog.Hash
	for i := range records {
		r := records[i]
		r.Seq, r.Prev, r.Writer = end.next, end.prev, s.writer.id
		begin := len(text)
		var err error
		if text, err = seal(text, &r); err != nil {
			return err
		}
		end.advance(r)
		next.pending = append(next.pending, end.mark())
		stored = leaves.add(tlog.RecordHash(text[begin:len(text)-1]), stored)
	}
	if cap(text) <= maxLine {
		s.text = text[:0]
	}
	if err := s.writePosition(next); err != nil {
		return err
	}
	if _, err := s.files.active.WriteAt(text, s.end.bytes); err != nil {
		return errors.Join(fmt.Errorf("writing it: %w", err), s.files.active.Truncate(s.end.bytes))
	}
	end.bytes += int64(len(text))
	first := s.tree.size
	s.end, s.tree = end, leaves
	s.disk.wrote(end.next - 1)
	for _, r := range records {
		s.open.see(r)
	}
	// The tree's file is a cache: hashes that cannot be written now are computed at the next start.
	_ = s.files.tree.write(first, stored)
	return nil
}

// writePosition overwrites the position in its file.
func (s *appender) writePosition(p position) error {
	s.place = p.encode(s.place[:0])
	if _, err := s.files.position.WriteAt(s.place, 0); err != nil {
		return fmt.Errorf("writing its position: %w", err)
	}
	s.at = p
	return nil
}

// rotate seals the active segment and begins the next.
func (s *appender) rotate() error {
	if err := s.append([]Record{{Kind: KindRotate, Time: s.now()}}); err != nil {
		return err
	}
	if err := s.keepCheckpoint(); err != nil {
		return err
	}
	// After this, no start reads the file again to compute its tree. If the sync fails, a start
	// still does, because the hashes on disk do not match the signature.
	_ = unix.Fdatasync(int(s.files.tree.file.Fd()))
	return s.openSegment(s.end.next, true)
}

func (s *appender) now() string { return formatTime(s.opts.Now()) }

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// close records the end of this process's unfinished acts, makes the log durable and closes
// its files.
func (s *appender) close() error {
	var err error
	if rest := s.open.closing(endedEarly, s.now()); len(rest)+len(s.backlog) > 0 {
		s.backlog = append(s.backlog, rest...)
		err = s.write(nil)
	}
	if s.disk.failed() == nil {
		err = errors.Join(err, s.locked(func() error { return errors.Join(s.catchUp(), s.keepCheckpoint()) }))
	}
	if err == nil {
		s.writer.finished()
	}
	return errors.Join(err, s.release())
}

// release closes the files.
func (s *appender) release() error {
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	return errors.Join(append(errs, s.files.close())...)
}

// syncDirectory makes the names in a directory durable.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
