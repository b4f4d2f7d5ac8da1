package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// groupTimeout is how long the end of killed processes is waited for. Where
// no process reaps orphans they stay as zombies, which do nothing.
const groupTimeout = 500 * time.Millisecond

// command is a program that runs on this host with its user's rights: a process and its group.
type command struct {
	spawn                 *spawner
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
}

var _ Program = (*command)(nil)

// startCommand starts a server's command with pipes to it.
func startCommand(c Config, spawn *spawner) (*command, error) {
	env := childEnv(os.Environ(), c.Env)
	path, err := findCommand(c.Command, c.Dir, env)
	if err != nil {
		return nil, startFailure(c, err)
	}
	p := &command{spawn: spawn,
		cmd: &exec.Cmd{Path: path, Args: append([]string{c.Command}, c.Args...), Env: env, Dir: c.Dir}}
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
	return p, nil
}

// makePipes connects three pipes and returns the ends that belong to the child.
// They are regular files, not the pipes of os/exec, so that reading and writing
// can be cut short by deadlines.
func (p *command) makePipes(undo *cleanup.Stack) ([]*os.File, error) {
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
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errors
	p.stdin, p.stdout, p.stderr = stdin, stdout, stderr
	return []*os.File{in, out, errors}, nil
}

// Stdio implements Program.
func (p *command) Stdio() (stdin, stdout, stderr *os.File) { return p.stdin, p.stdout, p.stderr }

// Wait implements Program. It reaps the process and ends what it left behind in its group.
func (p *command) Wait() string {
	p.cmd.Wait() // the state has the result
	p.endGroup()
	p.spawn.release(p.cmd.Process.Pid)
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("was ended by signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}

// endGroup kills what the process left behind in its group, and waits until it
// is gone: these are not our children, so they cannot be waited for.
func (p *command) endGroup() {
	timer := time.NewTimer(groupTimeout)
	defer timer.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.Signal(syscall.SIGKILL) {
		select {
		case <-tick.C:
		case <-timer.C:
			return
		}
	}
}

// Signal implements Program. It reaches the whole group.
func (p *command) Signal(sig syscall.Signal) bool {
	return syscall.Kill(-p.cmd.Process.Pid, sig) == nil
}
