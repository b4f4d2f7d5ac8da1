// Package ctrdtest starts private containerd daemons for tests and measurements. Each has
// a separate directory, does not touch a containerd of the host, and ends with everything
// that it started.
package ctrdtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// How long a daemon may take to serve, and to end.
const (
	startTimeout = 20 * time.Second
	endTimeout   = 10 * time.Second
)

// shimSockets is the directory in which the shims of all daemons of a host keep their sockets.
const shimSockets = "/run/containerd"

// Programs are what a daemon and its sandboxes are made of: absolute paths.
type Programs struct {
	Containerd string
	Shim       string // containerd-shim-runsc-v1
	Runsc      string
}

// Built are the programs that `make` builds in the repository's directory root.
func Built(root string) Programs {
	bin := filepath.Join(root, "bin")
	return Programs{
		Containerd: filepath.Join(bin, "containerd"),
		Shim:       filepath.Join(bin, "containerd-shim-runsc-v1"),
		Runsc:      filepath.Join(bin, "runsc"),
	}
}

// Daemon is a private containerd.
type Daemon struct {
	Address string // its socket

	dir   string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// Run starts a daemon that ends with the test. If containerd cannot run here, the test is
// skipped or fails, as documented at testenv.Sandbox.
func Run(t testing.TB) *Daemon {
	t.Helper()
	testenv.Sandbox(t)
	d, err := Start(Built(testenv.RepoRoot(t)))
	if err != nil {
		t.Fatalf("sandbox tests were asked for, but %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("containerd wrote:\n%s", d.Log())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Start starts a daemon. The caller must close it; if this process dies first, the kernel
// kills the daemon.
func Start(p Programs) (*Daemon, error) {
	dir, err := os.MkdirTemp("/tmp", "containerd-") // short: sockets' paths lie below
	if err != nil {
		return nil, err
	}
	d := &Daemon{Address: filepath.Join(dir, "sock"), dir: dir, ended: make(chan struct{})}
	if err := d.start(p); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a private containerd: %w", err), os.RemoveAll(dir))
	}
	if err := d.await(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a private containerd: %w", err), d.Close())
	}
	return d, nil
}

// config is the daemon's configuration: nothing of it lies outside of its directory,
// and what only Kubernetes and networks need is left out.
func (d *Daemon) config() string {
	return fmt.Sprintf(`version = 3
root = %q
state = %q
disabled_plugins = [
  "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
  "io.containerd.nri.v1.nri", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
address = %q
[ttrpc]
address = %q
`, filepath.Join(d.dir, "root"), filepath.Join(d.dir, "state"), d.Address, d.Address+".ttrpc")
}

func (d *Daemon) start(p Programs) error {
	// Users of sandboxes pass through to their bundles.
	if err := os.Chmod(d.dir, 0o711); err != nil {
		return err
	}
	config := filepath.Join(d.dir, "config.toml")
	if err := os.WriteFile(config, []byte(d.config()), 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(shimSockets, 0o711); err != nil {
		return err
	}
	// A tmpfs in the daemon's mount namespace keeps its shims' sockets apart.
	d.cmd = exec.Command("/bin/sh", "-c", "mount -t tmpfs sockets "+shimSockets+` && exec "$0" "$@"`,
		p.Containerd, "--config", config, "--log-level", "warn")
	log, err := os.Create(d.logFile())
	if err != nil {
		return err
	}
	defer log.Close()
	d.cmd.Stdout, d.cmd.Stderr = log, log
	attr, err := namespaces()
	if err != nil {
		return err
	}
	d.cmd.SysProcAttr = attr
	started := make(chan error)
	go func() {
		// The daemon dies with the thread that started it, which must last.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.cmd.Start()
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // the daemon's log has the reason of an unexpected end
			close(d.ended)
		}
	}()
	return <-started
}

// namespaces returns the namespaces of the daemon: a new mount namespace and, if root
// lacks the right to set the shim's OOM score, as in some virtual machines, a user
// namespace in which it has all capabilities.
func namespaces() (*syscall.SysProcAttr, error) {
	// Unshared, not cloned: then Go makes the mounts private, and the host sees none.
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL, Unshareflags: unix.CLONE_NEWNS}
	var header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return nil, err
	}
	if caps[0].Effective&(1<<unix.CAP_SYS_RESOURCE) == 0 {
		everyone := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 16}}
		attr.Cloneflags = unix.CLONE_NEWUSER
		attr.UidMappings, attr.GidMappings = everyone, everyone
		attr.GidMappingsEnableSetgroups = true
	}
	return attr, nil
}

// await waits until the daemon listens.
func (d *Daemon) await() error {
	deadline := time.After(startTimeout)
	for {
		// The socket is there a moment before the daemon listens on it.
		if conn, err := net.Dial("unix", d.Address); err == nil {
			return conn.Close()
		}
		select {
		case <-d.ended:
			return fmt.Errorf("it ended at once: %s", lastLine(d.Log()))
		case <-deadline:
			return fmt.Errorf("it did not listen within %v", startTimeout)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func (d *Daemon) logFile() string { return filepath.Join(d.dir, "log") }

// Log is what the daemon wrote so far.
func (d *Daemon) Log() string {
	data, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Kill ends the daemon as kill -9 does. Its shims and sandboxes live on.
func (d *Daemon) Kill() error {
	err := d.cmd.Process.Kill()
	<-d.ended
	return err
}

// Close ends the daemon and whatever still belongs to it, and removes its directory.
func (d *Daemon) Close() error {
	var errs []error
	select {
	case <-d.ended:
	default:
		errs = append(errs, d.cmd.Process.Signal(unix.SIGTERM))
		select {
		case <-d.ended:
		case <-time.After(endTimeout):
			errs = append(errs, errors.New("containerd did not end when it was asked to"), d.Kill())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	errs = append(errs, d.killRest(ctx), os.RemoveAll(d.dir))
	// The directory goes when nothing else uses it.
	_ = os.Remove(shimSockets)
	return errors.Join(errs...)
}

// killRest ends the processes that name the daemon's directory: shims do.
func (d *Daemon) killRest(ctx context.Context) error {
	err := procfs.KillMatching(ctx, func(arguments []string) bool {
		return slices.ContainsFunc(arguments, func(a string) bool { return strings.Contains(a, d.dir+"/") })
	})
	if err != nil {
		return fmt.Errorf("killing what is left of containerd: %w", err)
	}
	return nil
}
