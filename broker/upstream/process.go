package upstream

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

const (
	// exitTimeout is how long a server has to leave after its stdin was
	// closed, and again after SIGTERM (MCP 2025-11-25, Lifecycle / Shutdown).
	exitTimeout = time.Second
	// drainTimeout is how long its output is still read after it left, for
	// children that keep the pipe open.
	drainTimeout = time.Second
	// maxLogLine cuts a line of a server's stderr, in bytes.
	maxLogLine = 8 << 10
)

// Launcher starts the program of a server elsewhere than as a process of this host, such as in a sandbox.
type Launcher interface {
	// Launch starts the program anew. It is safe for concurrent use. The text of an error is shown to people, and ctx
	// bounds the start only.
	Launch(ctx context.Context) (Program, error)
}

// Program is a started program of a server.
type Program interface {
	// Stdio returns the pipes to the program. The caller closes them.
	Stdio() (stdin, stdout, stderr *os.File)
	// Wait returns when nothing of the program is left. how describes its end: "exited with status 1". It is called
	// once.
	Wait() (how string)
	// Signal reaches all processes of the program, and reports whether there were any. It is safe for concurrent use.
	Signal(sig syscall.Signal) bool
}

// process is a running program of a server, with its pipes.
type process struct {
	serverID string
	log      *slog.Logger
	program  Program
	stdin    *os.File
	stdout   *os.File
	stderr   *os.File

	exited   chan struct{} // closed when the program has been waited for
	finished chan struct{} // closed when its stderr has been read to the end, too
	stopOnce sync.Once

	mu    sync.Mutex
	lines firstAndLast // of stderr, to find the cause of an end
	ended string       // how the program ended; "" while it runs
}

// startProcess starts a server's program: in its sandbox, if it has one, or else its command on this host.
func startProcess(ctx context.Context, c Config, spawn *spawner, log *slog.Logger) (*process, error) {
	program, err := launch(ctx, c, spawn)
	if err != nil {
		return nil, err
	}
	p := &process{serverID: c.ID, log: log, program: program, exited: make(chan struct{}),
		finished: make(chan struct{})}
	p.stdin, p.stdout, p.stderr = program.Stdio()
	var reading sync.WaitGroup
	reading.Go(p.readStderr)
	go p.wait(&reading)
	return p, nil
}

func launch(ctx context.Context, c Config, spawn *spawner) (Program, error) {
	if c.Launcher == nil {
		return startCommand(c, spawn)
	}
	program, err := c.Launcher.Launch(ctx)
	if err != nil && !errors.Is(err, ErrClosed) {
		return nil, &StartError{ServerID: c.ID, Reason: ErrNotStarted, Problem: c.hide(err.Error()), cause: err}
	}
	return program, err
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

// wait waits for the end of the program and lets readers of its pipes finish.
func (p *process) wait(reading *sync.WaitGroup) {
	how := p.program.Wait()
	p.mu.Lock()
	p.ended = how
	p.mu.Unlock()
	deadline := time.Now().Add(drainTimeout)
	p.stdout.SetReadDeadline(deadline)
	p.stderr.SetReadDeadline(deadline)
	close(p.exited)
	reading.Wait()
	p.stderr.Close()
	close(p.finished)
}

// how describes how the program ended: "exited with status 1", "was ended by signal killed".
// It returns "" while the program runs.
func (p *process) how() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// exitsWithin waits for the program to end and its stderr to be read.
func (p *process) exitsWithin(d time.Duration) bool {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-p.finished:
		return true
	case <-timeout.C:
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
			timeout := time.NewTimer(exitTimeout)
			select {
			case <-p.exited:
			case <-timeout.C:
				p.program.Signal(sig)
			}
			timeout.Stop()
		}
	})
	<-p.finished
}
