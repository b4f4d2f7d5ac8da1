package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

const (
	// exitPatience is how long a server has to leave after its stdin was
	// closed, and again after SIGTERM (MCP 2025-11-25, Lifecycle / Shutdown).
	exitPatience = time.Second
	// drainPatience is how long its output is still read after it left, for
	// children that keep the pipe open.
	drainPatience = time.Second
	// groupPatience is how long the end of killed processes is waited for. Where
	// no process reaps orphans they stay as zombies, which do nothing.
	groupPatience = 500 * time.Millisecond
	// maxLogLine cuts a line of a server's stderr, in bytes.
	maxLogLine = 8 << 10
)

// process is a server's process and its group.
type process struct {
	serverID string
	log      *slog.Logger
	spawn    *spawner
	cmd      *exec.Cmd
	stdin    *os.File
	stdout   *os.File
	stderr   *os.File

	exited   chan struct{} // closed when the process has been waited for
	finished chan struct{} // closed when its stderr has been read to the end, too
	stopOnce sync.Once

	mu    sync.Mutex
	lines firstAndLast // of stderr, to find the cause of an end
	state *os.ProcessState
}

// startProcess starts a server's command with pipes to it.
func startProcess(c Config, spawn *spawner, log *slog.Logger) (*process, error) {
	env := childEnv(os.Environ(), c.Env)
	path, err := findCommand(c.Command, c.Dir, env)
	if err != nil {
		return nil, startFailure(c, err)
	}
	p := &process{serverID: c.ID, log: log, spawn: spawn, exited: make(chan struct{}), finished: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{c.Command}, c.Args...), Env: env, Dir: c.Dir}
	var undo cleanup.Stack
	defer undo.Run()
	theirs, err := p.makePipes(&undo)
	if err != nil {
		return nil, fmt.Errorf("starting server %q: %w", c.ID, err)
	}
	if err := spawn.run(p.cmd); err != nil {
		return nil, startFailure(c, err)
	}
	undo.Keep()
	for _, f := range theirs {
		f.Close()
	}
	var reading sync.WaitGroup
	reading.Go(p.readStderr)
	go p.wait(&reading)
	return p, nil
}

// makePipes connects three pipes and returns the ends that belong to the child.
// They are plain files, not the pipes of os/exec, so that reading and writing
// can be cut short by deadlines.
func (p *process) makePipes(undo *cleanup.Stack) ([]*os.File, error) {
	var theirs []*os.File
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			undo.Add(r.Close)
			undo.Add(w.Close)
		}
		return r, w, err
	}
	in, stdin, err := pipe()
	if err != nil {
		return nil, err
	}
	stdout, out, err := pipe()
	if err != nil {
		return nil, err
	}
	stderr, errors, err := pipe()
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, in, out, errors)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errors
	p.stdin, p.stdout, p.stderr = stdin, stdout, stderr
	return theirs, nil
}

// readStderr logs the server's stderr and keeps lines that may contain the reason of its end.
func (p *process) readStderr() {
	reader := bufio.NewReaderSize(p.stderr, maxLogLine)
	for {
		line, err := reader.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if text := trimLine(line); text != "" {
			p.keep(text)
			p.log.DebugContext(context.Background(), "upstream stderr", slog.String(telemetry.KeyServer, p.serverID),
				slog.String("line", text))
		}
		for cut { // the rest of a long line is dropped
			_, err = reader.ReadSlice('\n')
			cut = errors.Is(err, bufio.ErrBufferFull)
		}
		if err != nil {
			return
		}
	}
}

func (p *process) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines.add(line)
}

// stderrLines returns what is kept of stderr so far.
func (p *process) stderrLines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines.all()
}

// wait reaps the process, ends what it left behind in its group, and lets
// readers of its pipes finish.
func (p *process) wait(reading *sync.WaitGroup) {
	p.cmd.Wait() // the state has the result
	p.endGroup()
	p.spawn.release(p.cmd.Process.Pid)
	p.mu.Lock()
	p.state = p.cmd.ProcessState
	p.mu.Unlock()
	deadline := time.Now().Add(drainPatience)
	p.stdout.SetReadDeadline(deadline)
	p.stderr.SetReadDeadline(deadline)
	close(p.exited)
	reading.Wait()
	p.stderr.Close()
	close(p.finished)
}

// endGroup kills what the process left behind in its group, and waits until it
// is gone: these are not our children, so they cannot be waited for.
func (p *process) endGroup() {
	patience := time.NewTimer(groupPatience)
	defer patience.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.signal(syscall.SIGKILL) {
		select {
		case <-tick.C:
		case <-patience.C:
			return
		}
	}
}

// signal reaches the whole group and reports whether there was anybody left.
func (p *process) signal(sig syscall.Signal) bool {
	return syscall.Kill(-p.cmd.Process.Pid, sig) == nil
}

// how describes how the process ended: "exited with status 1", "was ended by signal killed".
// It returns "" while the process runs.
func (p *process) how() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return ""
	}
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("was ended by signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("exited with status %d", p.state.ExitCode())
}

// exitsWithin waits for the process to end and its stderr to be read.
func (p *process) exitsWithin(d time.Duration) bool {
	patience := time.NewTimer(d)
	defer patience.Stop()
	select {
	case <-p.finished:
		return true
	case <-patience.C:
		return false
	}
}

// stop asks the server to leave, by closing its stdin, then by SIGTERM, then
// makes it, and returns when its whole group is gone. It may be called twice
// and concurrently.
func (p *process) stop() {
	p.stopOnce.Do(func() {
		p.stdin.Close()
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			patience := time.NewTimer(exitPatience)
			select {
			case <-p.exited:
			case <-patience.C:
				p.signal(sig)
			}
			patience.Stop()
		}
	})
	<-p.finished
}
