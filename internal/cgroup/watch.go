package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// AwaitOOM blocks until the kernel has killed a process of the group because
// of the memory limit (true), or until ctx is done or the group is removed
// (false).
func (g *Group) AwaitOOM(ctx context.Context) (bool, error) {
	dir, ok := g.dirs[Memory]
	if !ok {
		<-ctx.Done()
		return false, nil
	}
	arm := armV2
	if g.version == 1 {
		arm = armV1
	}
	events, err := arm(dir)
	if err != nil {
		return false, fmt.Errorf("watching the memory of control group %q: %w", g.name, err)
	}
	defer events.Close()
	stop := context.AfterFunc(ctx, func() { events.Close() })
	defer stop()
	buffer := make([]byte, 4096)
	for {
		if g.Stat().OOMKills > 0 {
			return true, nil
		}
		_, err := events.Read(buffer)
		if _, gone := os.Stat(dir); gone != nil || ctx.Err() != nil {
			return false, nil
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return false, fmt.Errorf("watching the memory of control group %q: %w", g.name, err)
		}
		// Version 1 sends the event before it kills, so the counter changes later.
		if err := events.SetReadDeadline(time.Now().Add(settle)); err != nil {
			return false, err
		}
	}
}

// settle is how often the counter is read once there was an event.
const settle = 10 * time.Millisecond

// armV1 returns an eventfd that the kernel signals when the group is out of
// memory or removed (admin-guide/cgroup-v1/memory, section 10).
func armV1(dir string) (*os.File, error) {
	control, err := os.Open(filepath.Join(dir, "memory.oom_control"))
	if err != nil {
		return nil, err
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	events := os.NewFile(uintptr(fd), "oom events")
	line := fmt.Sprintf("%d %d", fd, control.Fd())
	if err := os.WriteFile(filepath.Join(dir, "cgroup.event_control"), []byte(line), 0); err != nil {
		events.Close()
		return nil, err
	}
	return events, nil
}

// armV2 returns an inotify descriptor: the kernel marks memory.events as
// modified whenever one of its counters grows (admin-guide/cgroup-v2).
func armV2(dir string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	events := os.NewFile(uintptr(fd), "memory events")
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(dir, "memory.events"),
		unix.IN_MODIFY|unix.IN_DELETE_SELF); err != nil {
		events.Close()
		return nil, err
	}
	return events, nil
}
