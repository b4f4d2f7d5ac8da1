package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process, or another lock of this one, holds the file.
var ErrLocked = errors.New("locked by another process")

// retryInterval is how often Acquire looks whether a lock is free again.
const retryInterval = 50 * time.Millisecond

// Lock is a held advisory lock on a file (flock). It ends with Release or with
// the process, however that ends.
type Lock struct {
	file *os.File
}

// Mode says who may hold a lock beside this one.
type Mode int

// The modes. The zero value shares with nobody.
const (
	Exclusive Mode = iota
	Shared
)

// TryAcquire locks the file at path, which it creates if needed, or the folder
// at path, or returns ErrLocked at once when that is not possible now.
func TryAcquire(path string, mode Mode) (*Lock, error) {
	how := unix.LOCK_EX
	if mode == Shared {
		how = unix.LOCK_SH
	}
	file, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("locking %q: %w", path, err)
	}
	if err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("locking %q: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// openLock opens the lock file for writing, or only for reading where it is a
// folder or belongs to someone else: flock is content with both.
func openLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EISDIR) {
		return os.Open(path)
	}
	return file, err
}

// Acquire is TryAcquire that waits until the lock is free or ctx ends.
func Acquire(ctx context.Context, path string, mode Mode) (*Lock, error) {
	ticker := time.NewTicker(retryInterval)
	defer ticker.Stop()
	for {
		lock, err := TryAcquire(path, mode)
		if !errors.Is(err, ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %q: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Release gives the lock back. The file stays, for the next holder. A second
// call does nothing.
func (l *Lock) Release() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("releasing the lock %q: %w", file.Name(), err)
	}
	return nil
}
