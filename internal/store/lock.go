package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned if another process, or another lock of this process, holds the file.
var ErrLocked = errors.New("locked by another process")

// retryInterval is the interval at which Acquire tries again.
const retryInterval = 50 * time.Millisecond

// Lock is a held advisory lock on a file or directory (flock). It ends with Release or with
// the process, however that ends.
type Lock struct {
	file *os.File
}

// Mode determines whether others may hold the lock at the same time.
type Mode int

// The modes. The zero value is exclusive.
const (
	Exclusive Mode = iota
	Shared
)

func (m Mode) operation() int {
	if m == Shared {
		return unix.LOCK_SH
	}
	return unix.LOCK_EX
}

// TryAcquire locks the file at path, which it creates if needed, or returns
// ErrLocked at once if that is not possible now. Only the file's owner can open it,
// because a user who can open a file can lock it.
func TryAcquire(path string, mode Mode) (*Lock, error) {
	file, err := open(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, lockMode)
	if err != nil {
		return nil, fmt.Errorf("locking %q: %w", path, err)
	}
	if err := withhold(file, lockMode); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return tryLock(file, mode)
}

// TryHold locks the existing directory at path, or returns ErrLocked at once if that is
// not possible now. Other users keep the right to pass through the directory and lose
// the right to open it, and with it the right to lock it.
func TryHold(path string, mode Mode) (*Lock, error) {
	dir, err := os.OpenFile(path, unix.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("locking directory %q: %w", path, err)
	}
	if err := withhold(dir, heldMode); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return tryLock(dir, mode)
}

// TryHoldReadable is TryHold for a directory that other users must be able to read.
// They can lock it, too, so the caller must have another way if it gets ErrLocked.
func TryHoldReadable(path string, mode Mode) (*Lock, error) {
	dir, err := os.OpenFile(path, unix.O_DIRECTORY|os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("locking directory %q: %w", path, err)
	}
	return tryLock(dir, mode)
}

// The most that locked files and directories permit.
const (
	lockMode fs.FileMode = 0o600
	heldMode fs.FileMode = 0o711
)

// withhold removes all permissions of an open file that most does not have. A former
// version of Airlock made locks that others could open.
func withhold(file *os.File, most fs.FileMode) error {
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&^most != 0 {
		err = file.Chmod(info.Mode().Perm() & most)
	}
	if err != nil {
		return fmt.Errorf("locking %q: %w", file.Name(), err)
	}
	return nil
}

func tryLock(file *os.File, mode Mode) (*Lock, error) {
	if err := unix.Flock(int(file.Fd()), mode.operation()|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("locking %q: %w", file.Name(), err), file.Close())
	}
	return &Lock{file: file}, nil
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

// Release releases the lock. The file stays for the next holder. A second call does nothing.
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

// WithLock waits for a lock of the open file, calls do, and releases the lock.
func WithLock(file *os.File, mode Mode, do func() error) error {
	for {
		err := unix.Flock(int(file.Fd()), mode.operation())
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("locking %q: %w", file.Name(), err)
		}
	}
	defer unix.Flock(int(file.Fd()), unix.LOCK_UN)
	return do()
}

// IsHeld reports whether a process holds an exclusive lock on the file at path.
// It does not follow a symbolic link. A missing file is not held.
func IsHeld(path string) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close() // releases the lock
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
