package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sys/unix"
)

const (
	// maxUnsigned is the most records behind the newest signature on stable storage. A log with
	// more of them was added to: no Airlock leaves it so, however it ends.
	maxUnsigned = 2 * maxBatch
	// keepEvery is how long what was added waits at most for a kept checkpoint.
	keepEvery = 5 * time.Second
)

// signing is what a process knows of the signatures of a log.
type signing struct {
	origin string
	newest uint64 // the record that the head names
	synced uint64 // the one that it names on stable storage
	length int    // bytes of the head
	kept   keptState
	at     time.Time // when a checkpoint was kept last
}

// keptState is how the kept checkpoints end.
type keptState struct {
	count  uint64
	digest tlog.Hash // of the last
	size   uint64    // the record that it names
	bytes  int64     // of the file
}

// settle makes everything durable and then signs it, in this order: a signature
// never covers what a failing machine could still lose.
func (s *appender) settle() error {
	if err := s.disk.sync(); err != nil {
		return err
	}
	_, err := s.signHead()
	return err
}

// flush signs written records, and keeps a checkpoint if one is due.
func (s *appender) flush() error {
	if err := s.disk.failed(); err != nil {
		return err
	}
	if time.Since(s.sign.at) >= keepEvery {
		return s.checkpoint()
	}
	return s.locked(func() error {
		if err := s.catchUp(); err != nil {
			return err
		}
		return s.settle()
	})
}

// unsigned reports whether the head does not cover all records.
func (s *appender) unsigned() bool { return s.end.next-1 > s.sign.newest || s.disk.unsynced() }

// unkept reports whether no kept checkpoint covers all records.
func (s *appender) unkept() bool { return s.end.next-1 > s.sign.kept.size }

// signHead writes the newest checkpoint over the last one. It is not synced: one
// that is lost leaves records that are chained, but not signed. The records must
// be durable.
func (s *appender) signHead() (*checkpoint, error) {
	if err := s.refreshKept(); err != nil {
		return nil, err
	}
	c := &checkpoint{
		origin: s.sign.origin, size: s.tree.size, root: s.tree.root(),
		kept: s.sign.kept.count, keptHash: s.sign.kept.digest, time: s.end.time,
	}
	if err := c.sign(&s.key); err != nil {
		return nil, err
	}
	if _, err := s.files.head.WriteAt(c.signed, 0); err != nil {
		return nil, fmt.Errorf("signing it: %w", err)
	}
	if len(c.signed) < s.sign.length {
		if err := s.files.head.Truncate(int64(len(c.signed))); err != nil {
			return nil, fmt.Errorf("signing it: %w", err)
		}
	}
	s.sign.newest, s.sign.length = c.size, len(c.signed)
	next := s.at
	next.durable = s.end.mark()
	return c, s.writePosition(next)
}

// syncSignature makes the head and the position durable.
func (s *appender) syncSignature() error {
	for _, f := range []*os.File{s.files.head, s.files.position} {
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return fmt.Errorf("signing it: %w", err)
		}
	}
	s.sign.synced = s.sign.newest
	return nil
}

// keepCheckpoint signs the current log and adds the checkpoint to the kept ones, unless no
// record was added since the last one. When it returns, the records, the checkpoint and the
// position are durable.
func (s *appender) keepCheckpoint() error {
	if err := s.disk.sync(); err != nil {
		return err
	}
	c, err := s.signHead()
	if err != nil {
		return err
	}
	// The head is on stable storage before the checkpoint is kept: after a loss of
	// power it must name that checkpoint, or be it.
	if err := unix.Fdatasync(int(s.files.head.Fd())); err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	if c.size > s.sign.kept.size {
		if err := s.appendKept(c); err != nil {
			return fmt.Errorf("keeping a checkpoint: %w", err)
		}
		if _, err := s.signHead(); err != nil { // which names it
			return err
		}
	}
	if err := unix.Fdatasync(int(s.files.position.Fd())); err != nil {
		return fmt.Errorf("signing it: %w", err)
	}
	s.sign.at, s.sign.synced = time.Now(), c.size
	return nil
}

// appendKept appends a checkpoint. If the disk is full, it appends nothing.
func (s *appender) appendKept(c *checkpoint) error {
	text := append(append([]byte(nil), c.signed...), '\n')
	if _, err := s.files.kept.WriteAt(text, s.sign.kept.bytes); err != nil {
		return errors.Join(err, s.files.kept.Truncate(s.sign.kept.bytes))
	}
	if err := s.files.kept.Sync(); err != nil {
		return err
	}
	s.sign.kept = keptState{s.sign.kept.count + 1, c.digest(), c.size, s.sign.kept.bytes + int64(len(text))}
	return nil
}

// refreshKept reads the checkpoints that other processes have kept. Called with
// the log's lock held.
func (s *appender) refreshKept() error {
	info, err := s.files.kept.Stat()
	if err != nil {
		return fmt.Errorf("reading the kept checkpoints: %w", err)
	}
	known := s.sign.kept
	switch {
	case info.Size() == known.bytes:
		return nil
	case info.Size() < known.bytes:
		return errors.New("its kept checkpoints were cut short while they were open")
	}
	text := make([]byte, info.Size()-known.bytes)
	if _, err := io.ReadFull(io.NewSectionReader(s.files.kept, known.bytes, int64(len(text))), text); err != nil {
		return fmt.Errorf("reading the kept checkpoints: %w", err)
	}
	notes, rest := keptNotes(text)
	for _, signed := range notes {
		c, err := openCheckpoint(signed, s.key.public)
		if err != nil || c.kept != known.count || c.keptHash != known.digest || c.origin != s.sign.origin {
			return errors.New("its kept checkpoints were changed while they were open")
		}
		known = keptState{known.count + 1, c.digest(), c.size, known.bytes + int64(len(signed)) + 1}
	}
	s.sign.kept = known
	if len(rest) > 0 { // a process was killed while it wrote it
		if err := s.files.kept.Truncate(known.bytes); err != nil {
			return fmt.Errorf("reading the kept checkpoints: %w", err)
		}
	}
	return nil
}
