package upstream

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// spawner starts processes so that none outlives Airlock, however Airlock ends.
//
// The kernel kills a child whose parent thread dies (prctl(2),
// PR_SET_PDEATHSIG), so all children are started by one thread that lives as
// long as the spawner. That does not reach grandchildren, and npx, uvx and
// shells make some: a guard, a shell that waits for the end of a pipe which
// only Airlock holds, kills the process groups that are left.
type spawner struct {
	log   *slog.Logger
	work  chan func() // for the thread
	start sync.Once
	ended sync.WaitGroup

	mu     sync.Mutex
	guard  *exec.Cmd      // nil until the first process
	notify io.WriteCloser // the list of groups to kill, for the guard
	closed bool
}

// guardScript keeps a list of process groups. It reads the lines "+ID" and "-ID". When its
// standard input ends, it kills the remaining groups.
const guardScript = `
while read -r line; do
	case $line in
	+*) set -- "$@" "${line#+}" ;;
	-*) gone=${line#-}; n=$#
		while [ "$n" -gt 0 ]; do
			[ "$1" = "$gone" ] || set -- "$@" "$1"
			shift; n=$((n - 1))
		done ;;
	esac
done
for group; do kill -s KILL -- "-$group" 2>/dev/null; done`

func newSpawner(log *slog.Logger) *spawner {
	return &spawner{log: log, work: make(chan func())}
}

// run starts cmd as the leader of a new process group, on the spawner's thread, and adds it to
// the guard's list.
func (s *spawner) run(cmd *exec.Cmd) error {
	s.start.Do(func() { s.ended.Go(s.loop) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.guard == nil {
		s.startGuardLocked()
	}
	if err := s.startLocked(cmd); err != nil {
		return err
	}
	s.tellLocked("+", cmd.Process.Pid)
	return nil
}

// loop runs the work on one thread. The thread ends with it: it was locked.
func (s *spawner) loop() {
	runtime.LockOSThread()
	for do := range s.work {
		do()
	}
}

func (s *spawner) startLocked(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	s.work <- func() { started <- cmd.Start() }
	return <-started
}

// startGuardLocked starts the guard. Without one, grandchildren of a killed
// Airlock live on: worth a warning, no reason to stop.
func (s *spawner) startGuardLocked() {
	guard := exec.Command("/bin/sh", "-c", guardScript, "airlock-guard")
	guard.Env = []string{}
	guard.Dir = "/"
	in, err := guard.StdinPipe()
	if err == nil {
		guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it must outlive Airlock
		err = guard.Start()
	}
	if err != nil {
		s.log.WarnContext(context.Background(), "no guard for upstream processes",
			slog.String(telemetry.KeyError, err.Error()))
		return
	}
	s.guard, s.notify = guard, in
}

// release removes a process group from the guard's list.
func (s *spawner) release(group int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked("-", group)
}

func (s *spawner) tellLocked(sign string, group int) {
	if s.notify == nil {
		return
	}
	if _, err := fmt.Fprintf(s.notify, "%s%d\n", sign, group); err != nil {
		s.log.WarnContext(context.Background(), "the guard of upstream processes is gone",
			slog.String(telemetry.KeyError, err.Error()))
		s.notify.Close()
		s.notify = nil
	}
}

// close ends the guard and the thread. All processes must be gone by then.
func (s *spawner) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.work)
	s.ended.Wait()
	if s.guard == nil {
		return nil
	}
	if s.notify != nil {
		s.notify.Close()
	}
	if err := s.guard.Wait(); err != nil {
		return fmt.Errorf("ending the guard of upstream processes: %w", err)
	}
	return nil
}
