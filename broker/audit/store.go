package audit

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// store writes the files of a log. It belongs to one goroutine at a time; other
// processes are kept out by a lock on the file "lock" in the directory.
type store struct {
	dir    string
	opts   Options
	hasher hasher
	signer note.Signer
	public string // the signer's public half
	writer *writer
	lock   *os.File
	head   *os.File

	active *os.File // the segment that is written
	end    int64    // bytes of it that are whole records
	next   uint64   // number of the next record
	prev   string   // hash of the last record
	time   string   // of the last record
	sealed bool     // the last record was KindRotate

	unsynced bool
	broken   error      // a sync failed: what is on disk is no longer known
	backlog  []Record   // outcomes that could not be written yet
	open     unfinished // what this process began and has not ended
}

// locked runs do while no other process can write.
func (s *store) locked(do func() error) error {
	return files.While(s.lock, files.Exclusive, do)
}

// write appends a batch, all of it or none, and what could not be written before.
func (s *store) write(batch []request) error {
	if s.broken != nil {
		s.keep(batch)
		return s.broken
	}
	records := s.backlog
	durable := false
	for _, r := range batch {
		records = append(records, r.record)
		durable = durable || r.durable
	}
	written := false
	err := s.locked(func() error {
		if err := s.catchUp(); err != nil {
			return err
		}
		if err := s.put(records); err != nil {
			return err
		}
		s.backlog, written = nil, true
		if !durable {
			return nil
		}
		return s.settle()
	})
	if err != nil && !written {
		s.keep(batch)
	}
	return err
}

// settle makes everything durable and then signs it, in this order: a signature
// never covers what a failing machine could still lose.
func (s *store) settle() error {
	if err := s.sync(); err != nil {
		return err
	}
	return s.sign()
}

// flush settles what was written without being waited for.
func (s *store) flush() error {
	if !s.unsynced || s.broken != nil {
		return nil
	}
	return s.locked(func() error {
		if err := s.catchUp(); err != nil {
			return err
		}
		return s.settle()
	})
}

// keep holds on to the records of what has happened, for the next write.
func (s *store) keep(batch []request) {
	for _, r := range batch {
		if !r.durable {
			s.backlog = append(s.backlog, r.record)
		}
	}
}

// put writes records at the end of the active segment. On an error the file is
// as it was before, or ends in a line that the next writer cuts off.
func (s *store) put(records []Record) error {
	if s.end >= s.opts.SegmentBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	return s.append(records)
}

func (s *store) append(records []Record) error {
	text, next, prev := []byte(nil), s.next, s.prev
	for i := range records {
		r := records[i]
		r.Seq, r.Prev, r.Writer = next, prev, s.writer.id
		line, err := seal(&r)
		if err != nil {
			return err
		}
		text, next, prev = append(text, line...), next+1, r.Hash
	}
	if _, err := s.active.WriteAt(text, s.end); err != nil {
		return errors.Join(fmt.Errorf("writing it: %w", err), s.active.Truncate(s.end))
	}
	s.end, s.next, s.prev, s.unsynced = s.end+int64(len(text)), next, prev, true
	for _, r := range records {
		s.open.see(r)
		s.time = r.Time
	}
	return nil
}

// rotate seals the active segment and begins the next.
func (s *store) rotate() error {
	if err := s.append([]Record{{Kind: KindRotate, Time: s.now()}}); err != nil {
		return err
	}
	s.sealed = true
	if err := errors.Join(s.sync(), s.keepCheckpoint()); err != nil {
		return err
	}
	return s.openSegment(s.next, true)
}

// sync makes everything that was written durable. After a failed sync the
// kernel may have dropped the data and will not say so again, so the log is
// broken until it is opened anew and read back.
func (s *store) sync() error {
	if !s.unsynced {
		return nil
	}
	if err := unix.Fdatasync(int(s.active.Fd())); err != nil {
		s.broken = fmt.Errorf("making it durable: %w", err)
		return s.broken
	}
	s.unsynced = false
	return nil
}

func (s *store) syncDirectory() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *store) now() string { return s.opts.Now().UTC().Format("2006-01-02T15:04:05.000000Z") }

// close ends what this process left open, makes the log durable and leaves it.
func (s *store) close() error {
	var err error
	if rest := s.open.closing("Airlock ended while it was under way", s.now()); len(rest)+len(s.backlog) > 0 {
		s.backlog = append(s.backlog, rest...)
		err = s.write(nil)
	}
	if s.broken == nil {
		err = errors.Join(err, s.locked(func() error { return errors.Join(s.catchUp(), s.sync(), s.keepCheckpoint()) }))
	}
	if err == nil {
		s.writer.finished()
	}
	return errors.Join(err, s.release())
}

// release closes the files.
func (s *store) release() error {
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	for _, f := range []*os.File{s.active, s.head, s.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
