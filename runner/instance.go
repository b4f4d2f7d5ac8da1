package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// instance is the directory in which one living Airlock keeps its sandboxes:
//
//	DIR/.lock        taken while a directory is made or swept
//	DIR/ID/.lock     held for as long as the Airlock lives
//	DIR/ID/SANDBOX/  see newHome
//
// A directory whose lock is free belonged to an Airlock that died. The lock file
// contains its holder's process ID, because a lock can outlive its holder for a moment:
// a child forked when Airlock was killed keeps the descriptor until it calls exec.
type instance struct {
	dir  string
	held *store.Lock
}

const lockName = ".lock"

// maxStateDir keeps the path of runsc's own control socket below the 107 bytes
// that a unix socket's path may have (unix(7)).
const maxStateDir = 40

const (
	// sweepTimeout bounds the removal of what dead Airlocks left.
	sweepTimeout = 30 * time.Second
	// staleLockGrace is how long a lock may stay held after its Airlock was killed.
	staleLockGrace = 2 * time.Second
)

func openInstance(ctx context.Context, dir string) (_ *instance, err error) {
	if !filepath.IsAbs(dir) || len(dir) > maxStateDir {
		return nil, fmt.Errorf("the directory for sandboxes %q must be an absolute path of at most %d bytes", dir,
			maxStateDir)
	}
	// Others may pass through, as the sandboxes' own users must, but not look.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	if err := store.CheckOwner(dir); err != nil {
		return nil, err
	}
	// The kernel names open files by their real path, and so do the checks.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	gate, err := store.Acquire(ctx, filepath.Join(dir, lockName), store.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("waiting for another Airlock to start: %w", err)
	}
	defer func() { err = errors.Join(err, gate.Release()) }()
	own, err := os.MkdirTemp(dir, "")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(own, 0o711); err != nil {
		return nil, err
	}
	lock := filepath.Join(own, lockName)
	held, err := store.TryAcquire(lock, store.Exclusive)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(lock, []byte(processIdentity(os.Getpid())), 0o600); err != nil {
		return nil, errors.Join(err, held.Release())
	}
	return &instance{dir: own, held: held}, nil
}

// processIdentity names a living process so that no later one has the same name: its ID
// and when it was started, in ticks since boot (proc(5), /proc/pid/stat, field
// 22). It is empty when there is no such process.
func processIdentity(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the program's name in brackets, which may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fmt.Sprintf("%d %s", pid, fields[19])
}

// holderLives reports whether the process that a lock names is still there. An
// Airlock in another PID namespace looks dead.
func holderLives(lock string) bool {
	name, err := os.ReadFile(lock)
	if err != nil {
		return false
	}
	var pid int
	if _, err := fmt.Sscan(string(name), &pid); err != nil {
		return false
	}
	return processIdentity(pid) == string(name)
}

// close removes the directory, which must have no sandboxes left in it.
func (i *instance) close() error {
	return errors.Join(os.RemoveAll(i.dir), i.held.Release())
}

// sweep removes what Airlocks that died left behind under dir. One that cannot
// be removed is logged and tried again at the next start.
func sweep(ctx context.Context, dir string, driver Driver, log *slog.Logger) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	gate, err := store.Acquire(ctx, filepath.Join(dir, lockName), store.Exclusive)
	if err != nil {
		return fmt.Errorf("waiting for another Airlock to start: %w", err)
	}
	defer func() { err = errors.Join(err, gate.Release()) }()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		former := filepath.Join(dir, entry.Name())
		if err := sweepInstance(ctx, former, driver); err != nil {
			log.WarnContext(ctx, "sandboxes of a former Airlock could not be removed",
				slog.String(telemetry.KeyPath, former), slog.Any(telemetry.KeyError, err))
		}
	}
	return nil
}

func sweepInstance(ctx context.Context, former string, driver Driver) error {
	lock := filepath.Join(former, lockName)
	held, err := store.TryAcquire(lock, store.Exclusive)
	if errors.Is(err, store.ErrLocked) && !holderLives(lock) {
		gasp, cancel := context.WithTimeout(ctx, staleLockGrace)
		defer cancel()
		if held, err = store.Acquire(gasp, lock, store.Exclusive); err != nil && gasp.Err() != nil {
			return nil // it lives elsewhere
		}
	}
	if errors.Is(err, store.ErrLocked) {
		return nil // it lives
	}
	if err != nil {
		return err
	}
	defer held.Release()
	entries, err := os.ReadDir(former)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		home := home{dir: filepath.Join(former, entry.Name())}
		if err := driver.Sweep(ctx, home.state()); err != nil {
			errs = append(errs, fmt.Errorf("sweeping sandbox %q: %w", entry.Name(), err))
			continue
		}
		errs = append(errs, home.remove())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(former)
}
