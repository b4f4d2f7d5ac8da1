package ctrd

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"golang.org/x/sys/unix"
)

// streams are named pipes between Airlock and the shim, which copies between them
// and the guest's own pipes. The shim's end of each is open from when the task is
// created until its last process has closed its own.
type streams struct {
	stdin          *stdin
	stdout, stderr *os.File
}

// stdin is the guest's standard input. The shim keeps it open until it is told.
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
	for _, pipe := range []struct {
		name string
		flag int
		to   func(*os.File)
	}{
		// Linux opens a pipe for both without waiting for the other end (fifo(7)).
		{"stdin", os.O_RDWR, func(f *os.File) { s.stdin = &stdin{File: f, closeTask: closeTask} }},
		{"stdout", os.O_RDONLY, func(f *os.File) { s.stdout = f }},
		{"stderr", os.O_RDONLY, func(f *os.File) { s.stderr = f }},
	} {
		path := stream(state, pipe.name)
		if err := unix.Mkfifo(path, 0o600); err != nil {
			return err
		}
		file, err := os.OpenFile(path, pipe.flag|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		pipe.to(file)
	}
	return nil
}

// close closes this side's ends. What is closed already is as closed as wanted.
func (s *streams) close() {
	if s.stdin != nil {
		_ = s.stdin.File.Close()
	}
	for _, f := range []*os.File{s.stdout, s.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// discard reads what nobody else will, so that the shim can end.
func (s *streams) discard() {
	for _, f := range []*os.File{s.stdout, s.stderr} {
		if f != nil {
			go func() { _, _ = io.Copy(io.Discard, f) }() // ends with the pipe
		}
	}
}

// closeStdin tells the shim to close its end of the guest's input.
func (d *daemon) closeStdin(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	_, err := d.client.TaskService().CloseIO(ctx, &tasks.CloseIORequest{ContainerID: id, Stdin: true})
	// What has ended has no input either.
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil
	}
	return err
}
