package audit

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/mod/sumdb/tlog"
)

// catchUp reads the records that other processes, or this one before a crash, added after
// the known end, and verifies that an Airlock wrote them: they must end at the position.
// The caller must hold the lock.
func (s *appender) catchUp() error {
	before := s.end.next
	torn, err := s.readNew()
	if err != nil {
		return err
	}
	if s.end.next == before && torn == 0 {
		return nil
	}
	if s.end.next != before {
		s.disk.wrote(s.end.next - 1) // others' records may not be durable yet
		at, err := readPosition(s.places.position)
		if err != nil {
			return err
		}
		if at == nil || !at.endsAt(s.end.mark()) {
			return s.disk.fail(fmt.Errorf("records %d to %d were added by another program", before,
				s.end.next-1))
		}
		s.at = *at
		s.sign.newest = min(s.sign.newest, before-1)
	}
	if torn > 0 {
		return s.cutTorn()
	}
	return nil
}

// readNew reads all complete records after the known end, also in further files, and returns how
// many bytes follow the last one.
func (s *appender) readNew() (torn int64, err error) {
	for {
		info, err := s.files.active.Stat()
		if err != nil {
			return 0, err
		}
		if info.Size() < s.end.bytes {
			return 0, fmt.Errorf("its file %q was cut short while it was open", s.files.active.Name())
		}
		if info.Size() > s.end.bytes {
			if torn, err = s.readBehind(s.end.bytes); err != nil {
				return 0, fmt.Errorf("reading %q: %w", s.files.active.Name(), err)
			}
		}
		if !s.end.sealed {
			return torn, nil
		}
		if torn > 0 {
			return 0, fmt.Errorf("its file %q goes on behind its end", s.files.active.Name())
		}
		if err := s.follow(); err != nil {
			return 0, err
		}
	}
}

// readBehind reads the records of the active file from an offset on.
func (s *appender) readBehind(from int64) (torn int64, err error) {
	first, stored := s.tree.size, []tlog.Hash(nil)
	err = eachLineOf(s.files.active, from, func(_ int, line []byte) error {
		r, err := open(line)
		if err != nil {
			return fmt.Errorf("record %d is damaged: %w", s.end.next, err)
		}
		if s.end.sealed || r.Seq != s.end.next || r.Prev != s.end.prev {
			return fmt.Errorf("record %d does not follow the one before it", r.Seq)
		}
		s.end.advance(r)
		s.end.bytes += int64(len(line)) + 1
		stored = s.tree.add(tlog.RecordHash(line), stored)
		return nil
	})
	if err != nil {
		return 0, s.disk.fail(err) // the tree is in between: the log must be opened anew
	}
	_ = s.files.tree.write(first, stored) // a cache
	size, torn, err := wholeBytes(s.files.active)
	if err == nil && size-torn != s.end.bytes {
		err = errors.New("it changed while it was read")
	}
	return torn, err
}

// follow moves on to the segment after a sealed one.
func (s *appender) follow() error {
	err := s.openSegment(s.end.next, false)
	if errors.Is(err, os.ErrNotExist) { // the process that sealed it died before the next step
		return s.openSegment(s.end.next, true)
	}
	return err
}

// openSegment makes all records durable and then opens the segment that begins with record
// first as the active one.
func (s *appender) openSegment(first uint64, create bool) error {
	if err := s.disk.sync(); err != nil {
		return err
	}
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := openPlain(segmentPath(s.places.dir, first), flags)
	if err != nil {
		return err
	}
	s.disk.use(f)
	if s.files.active != nil {
		s.files.active.Close()
		delete(s.files.inodes, s.files.active)
	}
	s.files.active, s.end.bytes, s.end.sealed = f, 0, false
	if create {
		return syncDirectory(s.places.dir)
	}
	return nil
}

// cutTorn removes a half-written line and records that. Its Append never returned, so the act
// that it announces has not happened.
func (s *appender) cutTorn() error {
	_, torn, err := wholeBytes(s.files.active)
	if err != nil || torn == 0 {
		return err
	}
	if err := s.files.active.Truncate(s.end.bytes); err != nil {
		return err
	}
	if s.end.sealed || s.end.next == 1 {
		return nil // the very first record was torn, and the log starts anew
	}
	detail := fmt.Sprintf("%d bytes of a record that was never finished were cut off", torn)
	return s.append([]Record{{Kind: KindRecovered, Time: s.now(), Detail: detail}})
}

// wholeBytes returns the size of an open segment, and the number of bytes after its last
// complete line.
func wholeBytes(f *os.File) (size, torn int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	for most := int64(4 << 10); ; most *= 8 { // nearly always the end is that of a line
		text := make([]byte, min(info.Size(), most, 2*maxLine))
		if _, err := io.ReadFull(io.NewSectionReader(f, info.Size()-int64(len(text)), int64(len(text))),
			text); err != nil {
			return 0, 0, err
		}
		if torn = unfinishedBytes(text); torn < int64(len(text)) || most >= min(info.Size(), 2*maxLine) {
			return info.Size(), torn, nil
		}
	}
}
