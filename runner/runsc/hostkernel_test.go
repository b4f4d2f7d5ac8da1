package runsc_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
)

// enterRoot runs the rest of its arguments in a root file system, $1, with the devices and
// the kernel of the host. Its writes are discarded.
const enterRoot = `set -e
PATH=$PATH:/usr/sbin:/sbin
root=$1; shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs tmpfs tmp
mount -t tmpfs tmpfs workspace
mkdir workspace/client
mount --bind opt/airlock/client workspace/client
mount -o remount,bind,ro .
exec chroot . /usr/bin/env -i "$@"`

// onHostKernel simulates a gVisor that does not isolate: the image's real guest in new
// namespaces and a root like a container's, but on the host's kernel.
func onHostKernel(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
	image := g.Spec.Image
	args := []string{"--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c",
		enterRoot, "enter", image.RootFS}
	args = append(append(args, image.Env...), image.Args...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = g.Stdin, g.Stdout, g.Stderr
	cmd.WaitDelay = 10 * time.Second
	_ = cmd.Run() // the runner observes the exit status
	return runner.Exit{Code: cmd.ProcessState.ExitCode()}
}

// TestHostKernelIsRefused starts what looks like a sandbox in every respect but the
// kernel. No code reaches it.
func TestHostKernelIsRefused(t *testing.T) {
	env := testenv.Sandbox(t)
	for _, name := range []string{"python", "node", "verify"} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "airlock-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			fake := &runnertest.Fake{Guest: onHostKernel}
			r, err := runner.New(fake, &runner.Options{Logger: logger(t), StateDir: filepath.Join(dir, "s"), Pool: 2,
				Save: true})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close(context.WithoutCancel(t.Context()))
			request := runner.Request{Image: image(t, env.Home, name), Limits: runner.DefaultLimits()}
			for range 2 {
				s, err := r.Acquire(t.Context(), request)
				if err == nil {
					s.Close()
				}
				if err == nil || !strings.Contains(err.Error(), "not answered by gVisor's kernel") {
					t.Errorf("got %v, want that it is not answered by gVisor's kernel", err)
				}
			}
			if n := r.Pooled(); n != 0 {
				t.Errorf("got %d sandboxes in the pool, want 0", n)
			}
		})
	}
}
