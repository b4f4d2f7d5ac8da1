package audit

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// storage makes the active file durable. Syncs do not run concurrently, because only one of two
// would return a failure. Records can be appended during a sync. The zero value has no file.
type storage struct {
	syncing sync.Mutex // held during a sync, and while the file changes

	mu      sync.Mutex // guards all below
	file    *os.File   // the active one
	written uint64     // the newest record in it
	durable uint64     // the newest record on stable storage
	broken  error      // why the log cannot be used until it is opened anew
}

// use makes another file the active one. The previous file must be durable.
func (s *storage) use(f *os.File) {
	s.syncing.Lock() // so that the one before may be closed
	defer s.syncing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file = f
}

// wrote reports that all records up to last are in the file.
func (s *storage) wrote(last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = last
}

// sync makes all records durable that are in the file when it is called. After a failed sync the
// kernel may have dropped the data without reporting it again, so the log is unusable until it is
// opened and read again.
func (s *storage) sync() error {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	s.mu.Lock()
	file, written, err := s.file, s.written, s.broken
	done := file == nil || written == s.durable
	s.mu.Unlock()
	if err != nil || done {
		return err
	}
	err = unix.Fdatasync(int(file.Fd()))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken = fmt.Errorf("making it durable: %w", err)
		return s.broken
	}
	s.durable = written
	return nil
}

// unsynced reports whether some records may not be durable.
func (s *storage) unsynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written != s.durable
}

// fail makes the log unusable, for the first reason given.
func (s *storage) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
	return s.broken
}

// failed returns why the log is unusable, nil while it can be used.
func (s *storage) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}
