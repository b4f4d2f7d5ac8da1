package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// thread is one thread of this process that sits in a version 1 group. What it
// forks starts inside the group, without a moment outside, and without the
// write that moves a whole process, which costs milliseconds of RCU waiting.
type thread struct {
	jobs     chan func()
	done     chan struct{}
	stopOnce sync.Once
}

func newThread(dirs []string) (*thread, error) {
	t := &thread{jobs: make(chan func()), done: make(chan struct{})}
	entered := make(chan error)
	onOwnThread(func() {
		defer close(t.done)
		err := enter(dirs)
		entered <- err
		if err != nil {
			return
		}
		for job := range t.jobs {
			job()
		}
	})
	if err := <-entered; err != nil {
		return nil, err
	}
	return t, nil
}

// onOwnThread runs f on a thread that nothing else ever runs on and that ends
// with f. The main thread of a process cannot end, so it is never taken.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// While this goroutine holds the main thread, the next one gets another.
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			f()
		}()
		<-locked
		runtime.UnlockOSThread()
	}()
}

func enter(dirs []string) error {
	tid := strconv.Itoa(unix.Gettid())
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte(tid), 0); err != nil {
			return fmt.Errorf("entering control group: %w", err)
		}
	}
	return nil
}

func (t *thread) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	t.jobs <- func() { result <- cmd.Start() }
	return <-result
}

// stop ends the thread. No start may follow. Calling it twice is fine.
func (t *thread) stop() {
	t.stopOnce.Do(func() { close(t.jobs) })
	<-t.done
}
