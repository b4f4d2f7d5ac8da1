package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// programScript is run by the shell of an image before a program. Like a guest, it shows the kernel and the network
// devices that the program will have, and waits. With a network, it runs the probe of the image's language on a line of
// its input first. exec leaves nothing of it: the program has its process ID and pipes.
const programScript = `cat /proc/version /proc/net/dev && read -r word targets || exit
if [ "$word" = ` + probeWord + ` ]; then
	guest=/opt/airlock/guest python=/usr/bin/python3 && echo "$word" || exit
	if [ -x "$python" ]; then env -i "$python" -I -S -B "$guest/airlock_guest/probe.py" $targets || exit
	else env -i /usr/bin/node "$guest/probe.mjs" $targets || exit; fi
fi
echo ready && read -r _ && exec "$0" "$@"`

// Program is a program with its own input and output in a sandbox that lasts as long as the program. Its methods are
// safe for concurrent use.
type Program struct {
	id                    string
	process               Process
	stdin, stdout, stderr *os.File

	closeOnce sync.Once
	closeErr  error
	onClose   *cleanup.Stack
}

// StartProgram starts Image.Args in a sandbox with a separate kernel, which is checked from inside and outside before
// the program begins. It takes no turn of Acquire. There is no broker's socket in the sandbox. ctx bounds the start;
// the caller must close the program. If the driver has no pipes to a program, the error is ErrNoPrograms.
func (r *Runner) StartProgram(ctx context.Context, req Request) (_ *Program, err error) {
	if err := req.Limits.Check(); err != nil {
		return nil, fmt.Errorf("starting a program: %w", err)
	}
	ctx, done, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	id := newID()
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.StartTimeout,
		fmt.Errorf("its sandbox was not ready within %v", r.opts.StartTimeout))
	defer cancel()
	p, err := r.launchProgram(ctx, id, req)
	if err != nil {
		return nil, fmt.Errorf("starting sandbox %q: %w", id, err)
	}
	if err := errors.Join(r.beginProgram(ctx, p, req.Network), r.proofs.hold()); err != nil {
		for _, pipe := range []*os.File{p.stdin, p.stdout, p.stderr} {
			_ = pipe.Close() // nobody has them
		}
		return nil, errors.Join(fmt.Errorf("starting sandbox %q: %w", id, err), p.Close())
	}
	return p, nil
}

// launchProgram starts the sandbox of a program, and everything around it.
func (r *Runner) launchProgram(ctx context.Context, id string, req Request) (_ *Program, err error) {
	var undo, files cleanup.Stack
	defer func() { err = errors.Join(err, files.Run(), undo.Run()) }()
	home, err := r.newHome(id)
	undo.Add(home.remove)
	if err != nil {
		return nil, err
	}
	image := req.Image
	image.Args = append([]string{"/bin/sh", "-c", programScript}, image.Args...)
	process, err := r.driver.Start(ctx, Spec{ID: id, Image: image, Limits: req.Limits, Mounts: req.Mounts,
		StateDir: home.state(), Network: req.Network.device(), User: req.User})
	if err != nil {
		return nil, err
	}
	p := &Program{id: id, process: process}
	undo.Add(process.Close)
	stdin, isFile := process.Stdin().(*os.File)
	stdout, isOut := process.Stdout().(*os.File)
	stderr, isErr := process.Stderr().(*os.File)
	if !isFile || !isOut || !isErr {
		return nil, ErrNoPrograms
	}
	for _, pipe := range []struct {
		from *os.File
		to   **os.File
	}{{stdin, &p.stdin}, {stdout, &p.stdout}, {stderr, &p.stderr}} {
		if *pipe.to, err = duplicate(pipe.from); err != nil {
			return nil, err
		}
		files.Add((*pipe.to).Close)
	}
	if err := stdin.Close(); err != nil { // the program sees the end of its input once the caller closes p.stdin
		return nil, err
	}
	r.mu.Lock()
	r.programs[p] = struct{}{}
	r.mu.Unlock()
	undo.Add(func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.programs, p)
		return nil
	})
	p.onClose = undo.Take()
	files.Keep()
	return p, nil
}

// duplicate returns another descriptor of a pipe. The description stays non-blocking.
func duplicate(file *os.File) (*os.File, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	if err := raw.Control(func(own uintptr) { fd, failed = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// beginProgram checks the sandbox and lets the program begin.
func (r *Runner) beginProgram(ctx context.Context, p *Program, network *Network) error {
	line, check := nowLine, func(said string) error { return checkGreeting(said, false) }
	if network != nil {
		tried, err := newProbe(network)
		if err != nil {
			return err
		}
		defer tried.close()
		line, check = tried.line(), tried.check
	}
	stop := context.AfterFunc(ctx, func() { _ = p.stdout.SetReadDeadline(time.Unix(1, 0)) })
	said, err := p.greet(line)
	if !stop() {
		return context.Cause(ctx)
	}
	if err == nil {
		err = r.proofs.record(check(said))
	}
	if err == nil {
		err = p.process.Verify()
	}
	if err == nil {
		err = r.proofs.record(network.open())
	}
	if err == nil {
		_, err = io.WriteString(p.stdin, nowLine)
	}
	return err
}

// greet sends the first line to the sandbox's shell and returns its greeting.
func (p *Program) greet(line string) (string, error) {
	if _, err := io.WriteString(p.stdin, line); err != nil {
		return "", err
	}
	return readGreeting(p.stdout)
}

// ID returns the name of the program's sandbox, unique on this host.
func (p *Program) ID() string { return p.id }

// Stdio returns the pipes to the program. The caller closes them, before or after Close.
func (p *Program) Stdio() (stdin, stdout, stderr *os.File) { return p.stdin, p.stdout, p.stderr }

// Wait blocks until the program has ended. An error means that the sandbox failed, not the program.
func (p *Program) Wait(ctx context.Context) (Exit, error) { return p.process.Wait(ctx) }

// Kill ends every process of the sandbox at once. Calling it twice is fine.
func (p *Program) Kill() error { return p.process.Kill() }

// Usage returns what the sandbox has consumed so far.
func (p *Program) Usage() Usage { return p.process.Usage() }

// Close kills what still runs and removes everything that belongs to the sandbox but the pipes. Calling it twice is
// fine and returns the same.
func (p *Program) Close() error {
	p.closeOnce.Do(func() {
		if err := p.onClose.Run(); err != nil {
			p.closeErr = fmt.Errorf("closing sandbox %q: %w", p.id, err)
		}
	})
	return p.closeErr
}
