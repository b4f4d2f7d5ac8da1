package ctrd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"
)

// streams are named pipes between Airlock and the shim, which copies between them
// and the guest's own pipes, and what carries the outputs on. The shim's end of an
// output is open from when the task is created until the last process inside has
// closed its own.
type streams struct {
	stdin          *stdin
	stdout, stderr *relay
}

// stdin is the guest's standard input. The shim keeps it open until closeStdin.
type stdin struct {
	*os.File
	closeTask func() error
	once      sync.Once
	err       error
}

// Close ends the guest's input. Calling it twice is fine.
func (s *stdin) Close() error {
	s.once.Do(func() { s.err = errors.Join(s.File.Close(), s.closeTask()) })
	return s.err
}

func stream(state, name string) string { return filepath.Join(state, name) }

// open makes the pipes of a sandbox.
func (s *streams) open(state string, closeTask func() error) error {
	// Linux opens a pipe for both without waiting for the other end (fifo(7)).
	in, err := openPipe(stream(state, "stdin"), os.O_RDWR)
	if err != nil {
		return err
	}
	s.stdin = &stdin{File: in, closeTask: closeTask}
	for name, to := range map[string]**relay{"stdout": &s.stdout, "stderr": &s.stderr} {
		from, err := openPipe(stream(state, name), os.O_RDONLY)
		if err != nil {
			return err
		}
		if *to, err = newRelay(from); err != nil {
			from.Close()
			return err
		}
	}
	return nil
}

func openPipe(path string, flag int) (*os.File, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, err
	}
	return os.OpenFile(path, flag|unix.O_NONBLOCK, 0)
}

// carry begins to pass outputs on, once the shim has opened its ends: before, a
// pipe looks as if it had ended.
func (s *streams) carry() {
	s.stdout.begin()
	s.stderr.begin()
}

// abandon makes outputs go nowhere, so that the shim can end though nothing reads them.
func (s *streams) abandon() {
	for _, r := range []*relay{s.stdout, s.stderr} {
		if r != nil {
			_ = r.out.Close()
		}
	}
}

// close closes this side's ends. It may be called twice.
func (s *streams) close() {
	if s.stdin != nil {
		_ = s.stdin.File.Close()
	}
	for _, r := range []*relay{s.stdout, s.stderr} {
		if r != nil {
			r.close()
		}
	}
}

// closeStdin asks the shim to close its end of the guest's input.
func (d *daemon) closeStdin(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	_, err := d.client.TaskService().CloseIO(ctx, &tasks.CloseIORequest{ContainerID: id, Stdin: true})
	// A process that has ended has no input either.
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
