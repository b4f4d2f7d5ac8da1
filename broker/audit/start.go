package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// openStore opens and repairs the log.
func openStore(dir string, opts Options) (*store, error) {
	var undo cleanup.Stack
	defer undo.Run()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	keys := opts.Keys
	if keys == "" {
		keys = filepath.Join(dir, "keys")
	}
	h, err := loadHasher(keys)
	if err != nil {
		return nil, err
	}
	signer, public, err := loadSigner(keys)
	if err != nil {
		return nil, err
	}
	s := &store{dir: dir, opts: opts, hasher: h, signer: signer, public: public}
	undo.Add(s.release)
	if s.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if s.head, err = os.OpenFile(filepath.Join(dir, headFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := s.locked(s.start); err != nil {
		return nil, err
	}
	undo.Keep()
	return s, nil
}

// start brings the log into a state that can be appended to. Called with the lock held.
func (s *store) start() error {
	list, err := segments(s.dir)
	if err != nil {
		return err
	}
	first := uint64(1)
	if len(list) > 0 {
		if first, err = lastWritten(list); err != nil {
			return err
		}
	}
	remark, err := s.holdToSignatures(list)
	if err != nil {
		return err
	}
	if s.writer, err = newWriter(s.dir, first); err != nil {
		return err
	}
	s.next = first
	if first == 1 {
		s.prev = genesis // otherwise the segment's own records say what came before
	}
	if err := s.openSegment(first, len(list) == 0); err != nil {
		return err
	}
	if s.next == 1 {
		if err := s.put([]Record{{Kind: KindLogStart, Time: s.now()}}); err != nil {
			return err
		}
	}
	if remark != "" {
		if err := s.put([]Record{{Kind: KindRecovered, Time: s.now(), Detail: remark}}); err != nil {
			return err
		}
	}
	if err := s.closeUnfinished(); err != nil {
		return err
	}
	return errors.Join(s.sync(), s.keepCheckpoint())
}

// lastWritten returns the number of the newest segment that has a whole record:
// the very last may have none when its maker died before it had written one.
func lastWritten(list []segment) (uint64, error) {
	for i := len(list) - 1; i > 0; i-- {
		any, err := hasRecord(list[i].path)
		if err != nil {
			return 0, err
		}
		if any {
			return list[i].first, nil
		}
	}
	oldest := list[0]
	if oldest.first == 1 {
		return 1, nil
	}
	any, err := hasRecord(oldest.path)
	if err == nil && !any {
		err = fmt.Errorf("its only file %q has no record, and what came before is missing", oldest.path)
	}
	return oldest.first, err
}

func hasRecord(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	t, err := readTail(f, 0)
	if err != nil {
		return false, fmt.Errorf("reading %q: %w", path, err)
	}
	return t.any, nil
}

// openSegment makes the segment that begins with the numbered record the active one.
func (s *store) openSegment(first uint64, create bool) error {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	path := segmentPath(s.dir, first)
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	if s.active != nil {
		s.active.Close() // nothing of it is unsynced: see rotate
	}
	s.active, s.end, s.sealed = f, 0, false
	if create {
		return s.syncDirectory()
	}
	return s.catchUp()
}

// catchUp reads what other processes, or this one before a crash, wrote since
// s.end. Called with the lock held.
func (s *store) catchUp() error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(s.active.Fd()), &stat); err != nil {
		return err
	}
	switch {
	case stat.Nlink == 0:
		return fmt.Errorf("its file %q was removed while it was open", s.active.Name())
	case stat.Size < s.end:
		return fmt.Errorf("its file %q was cut short while it was open", s.active.Name())
	case stat.Size == s.end && s.sealed:
		return s.follow()
	case stat.Size == s.end:
		return nil
	}
	t, err := readTail(s.active, s.end)
	if err != nil {
		return fmt.Errorf("reading %q: %w", s.active.Name(), err)
	}
	s.unsynced = true // others' records may not be durable yet
	if t.any {
		s.end, s.next, s.prev, s.time = t.size, t.last.Seq+1, t.last.Hash, t.last.Time
		s.sealed = t.last.Kind == KindRotate
	}
	if t.torn > 0 {
		return s.cut(t)
	}
	if s.sealed {
		return s.follow()
	}
	return nil
}

// follow moves on to the segment after a sealed one.
func (s *store) follow() error {
	err := s.openSegment(s.next, false)
	if errors.Is(err, os.ErrNotExist) { // whoever sealed it died before the next step
		return s.openSegment(s.next, true)
	}
	return err
}

// cut removes a half-written line. Its Append never returned, so nothing it
// announces has happened; that there was one is recorded.
func (s *store) cut(t tail) error {
	if err := s.active.Truncate(s.end); err != nil {
		return err
	}
	switch {
	case s.sealed:
		return s.follow()
	case s.prev == genesis:
		return nil // the very first record was torn: the log starts anew
	}
	detail := fmt.Sprintf("%d bytes of a record that was never finished were cut off", t.torn)
	return s.put([]Record{{Kind: KindRecovered, Time: s.now(), Detail: detail}})
}
