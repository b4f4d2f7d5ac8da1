package runsc

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
	"github.com/airlock-mcp/airlock/runner/runsc/brokerfs"
	"github.com/airlock-mcp/airlock/runner/runsc/hostfs"
)

// prepare writes what gVisor's kernel reads at its start, and gathers what it is given.
func (p *process) prepare(files *fileSystems, config *specs.Spec, directories []string) (parts, error) {
	if err := writeConfig(p.spec, config); err != nil {
		return parts{}, err
	}
	if err := os.WriteFile(watchConfig(p.spec.StateDir), gvisor.TraceSession(""), 0o600); err != nil {
		return parts{}, err
	}
	return p.gather(files, directories)
}

// gather opens everything that gVisor's kernel is given, and this side's ends
// of it. What p holds is closed with p; the parts are closed once the kernel
// has them.
func (p *process) gather(files *fileSystems, directories []string) (k parts, err error) {
	p.theirs = nil
	keep := func(f *os.File, err error) (*os.File, error) {
		if err == nil {
			p.theirs = append(p.theirs, f)
		}
		return f, err
	}
	image, err := keep(files.root(p.spec.Image))
	if err != nil {
		return k, err
	}
	k.images = []*os.File{image}
	for _, dir := range directories {
		if image, err = keep(files.directory(dir)); err != nil {
			return k, fmt.Errorf("opening what sandbox %q mounts: %w", p.spec.ID, err)
		}
		k.images = append(k.images, image)
	}
	if k.live, err = p.serveLive(keep); err != nil {
		return k, err
	}
	state := p.spec.StateDir
	for _, file := range []struct {
		to   **os.File
		path string
		mode int
	}{
		{&k.spec, configFile(state), os.O_RDONLY},
		{&k.session, watchConfig(state), os.O_RDONLY},
		{&k.log, logFile(state), os.O_WRONLY | os.O_APPEND | os.O_CREATE},
		{&k.panics, panicFile(state), os.O_WRONLY | os.O_APPEND | os.O_CREATE},
	} {
		if *file.to, err = keep(os.OpenFile(file.path, file.mode, 0o600)); err != nil {
			return k, err
		}
	}
	return k, p.connect(&k, keep)
}

// serveLive starts the file servers of the live mounts, in the order of the configuration, which is that of the
// targets.
func (p *process) serveLive(keep func(*os.File, error) (*os.File, error)) (theirs []*os.File, err error) {
	mounts := slices.DeleteFunc(slices.Clone(p.spec.Mounts), func(m runner.Mount) bool { return !m.Live })
	slices.SortFunc(mounts, func(a, b runner.Mount) int { return strings.Compare(a.Target, b.Target) })
	for _, m := range mounts {
		server, end, err := hostfs.Start(m.Source, m.Writable, m.Seen)
		if _, err := keep(end, err); err != nil {
			return nil, err
		}
		p.live, theirs = append(p.live, server), append(theirs, end)
	}
	return theirs, nil
}

// MountsConfined reports whether the threads that serve live mounts are confined to them, by Landlock.
func MountsConfined() bool { return hostfs.Confined() }

// outputBuffer is how many bytes a pipe of the guest's output holds: as much as Node's guest
// holds of a stream, so that it need not wait at its end until the host has read.
const outputBuffer = 256 << 10

// connect makes the ends of pipes and sockets.
func (p *process) connect(k *parts, keep func(*os.File, error) (*os.File, error)) (err error) {
	p.broker, k.broker, err = brokerfs.Start(p.dialBroker)
	if _, err = keep(k.broker, err); err != nil {
		return err
	}
	p.forks, k.reports, err = watchForks(p.Kernel)
	if _, err = keep(k.reports, err); err != nil {
		return err
	}
	for i, ours := range []**os.File{&p.stdin, &p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		k.stdio[i], *ours = w, r
		if i == 0 {
			k.stdio[i], *ours = r, w
		}
		p.theirs = append(p.theirs, k.stdio[i])
		if i > 0 {
			// Where the kernel refuses, the code waits for its output to be read more often.
			_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, outputBuffer)
		}
	}
	if p.started, k.started, err = os.Pipe(); err != nil {
		return err
	}
	p.theirs = append(p.theirs, k.started)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: controlSocket(p.spec.StateDir), Net: "unix"})
	if err != nil {
		return err
	}
	p.listener = listener
	k.control, err = keep(listener.File())
	return err
}

// dialBroker connects the code inside to the broker.
func (p *process) dialBroker() (int, error) {
	if p.spec.Broker == nil {
		return -1, unix.ECONNREFUSED
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: p.spec.Broker.Addr().String()}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
