package contract_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/contract"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// guestCommands are the entrypoints of the images.
var guestCommands = map[string][]string{
	"python": {"/usr/bin/python3", "-I", "-S", "-B", "-X", "utf8", "/opt/airlock/guest/main.py"},
	"node": {"/opt/node", "--openssl-config=/opt/airlock/guest/openssl.cnf", "--inspect-port=0",
		"--inspect-publish-uid=http", "/opt/airlock/guest/main.mjs"},
}

// enter makes the file system of a sandbox under $1 and runs the rest of its
// arguments in it: a root with the host's programs, and the guest's own places.
const enter = `set -e
PATH=$PATH:/usr/sbin:/sbin
root=$1; shift
mount -t tmpfs tmpfs "$root"
cd "$root"
mkdir -p usr proc dev tmp workspace/client workspace/servers run/airlock opt/airlock/guest
for dir in bin sbin lib lib64; do
  if [ -L /$dir ]; then ln -s "$(readlink /$dir)" $dir; elif [ -d /$dir ]; then mkdir $dir; mount --rbind /$dir $dir; fi
done
mount --rbind /usr usr
mount --rbind /dev dev
mount -t proc proc proc
mount --bind "$AIRLOCK_GUEST" opt/airlock/guest
mount --bind "$AIRLOCK_CLIENT" workspace/client
mount --bind "$AIRLOCK_SERVERS" workspace/servers
mount --bind "$AIRLOCK_SOCKET" run/airlock
touch opt/node; mount --bind "$AIRLOCK_NODE" opt/node
exec chroot . /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp LANG=C.UTF-8 PYTHONPATH=/workspace /bin/sh -c 'cd /workspace; exec "$@"' guest "$@"`

// exit is how a guest's process ended.
type exit struct{ code, signal int }

// outcome is what a run on the test's host reported.
type outcome struct {
	line           []byte
	stdout, stderr string
}

// runGuest runs code in a guest in new namespaces, without gVisor. It does not have a
// sandbox's limits: cases that need them run elsewhere.
func runGuest(t *testing.T, language, code string, ahead bool) outcome {
	t.Helper()
	h := newHost(language, code)
	return h.run(t, ahead, func(ctx context.Context, listener net.Listener) error {
		return wire.Serve(ctx, listener, h.handle)
	})
}

// run starts a guest whose socket is answered by serve, and reports on it.
func (h *host) run(t *testing.T, ahead bool, serve func(context.Context, net.Listener) error) outcome {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listener, err := net.Listen("unix", filepath.Join(dir, "broker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener) }()

	var stdout, stderr bytes.Buffer
	ended, err := startGuest(ctx, t, h.language, dir, ahead, &stdout, &stderr)
	if err != nil {
		t.Fatalf("the guest: %v\nstderr: %s", err, stderr.String())
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("the socket: %v", err)
	}
	var delivered *delivery
	select {
	case d := <-h.finished:
		delivered = &d
	default:
	}
	line, err := report(h, delivered, ended, stdout.String())
	if err != nil {
		t.Fatal(err)
	}
	return outcome{line, stdout.String(), stderr.String()}
}

// startGuest starts the guest, speaks the two lines of its start, and waits for
// its end. Ahead lets it load ahead of time, as in a pool.
func startGuest(ctx context.Context, t *testing.T, language, socketDir string, ahead bool, stdout,
	stderr io.Writer) (exit, error) {
	t.Helper()
	root := testenv.RepoRoot(t)
	args := append([]string{"--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
		enter, "enter", t.TempDir()},
		guestCommands[language]...)
	if signal.Ignored(os.Interrupt) { // as by a shell's jobs in the background: the guest would inherit it
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = append(os.Environ(),
		"AIRLOCK_GUEST="+filepath.Join(root, "images", language, "guest"),
		"AIRLOCK_CLIENT="+filepath.Join(root, "images", language, "client"),
		"AIRLOCK_SERVERS="+wrappers(t, language),
		"AIRLOCK_SOCKET="+socketDir,
		"AIRLOCK_NODE="+nodeProgram(t),
	)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return exit{}, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return exit{}, err
	}
	if err := cmd.Start(); err != nil {
		return exit{}, err
	}
	lines := bufio.NewReader(output)
	if !ahead {
		if _, err := io.WriteString(stdin, "go\n"); err != nil {
			return exit{}, err
		}
	}
	for line := ""; line != "ready\n"; { // before it, which kernel answers and what network there is
		if line, err = lines.ReadString('\n'); err != nil {
			return exit{}, errors.Join(err, cmd.Wait(), errors.New("the guest did not say that it is ready, but "+line))
		}
	}
	if ahead {
		if _, err := io.WriteString(stdin, "go\n"); err != nil {
			return exit{}, err
		}
	}
	if _, err := io.Copy(stdout, lines); err != nil {
		return exit{}, err
	}
	return exitOf(cmd.Wait())
}

func exitOf(err error) (exit, error) {
	var ended *exec.ExitError
	switch {
	case err == nil:
		return exit{}, nil
	case !errors.As(err, &ended):
		return exit{}, err
	}
	status := ended.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return exit{signal: int(status.Signal())}, nil
	}
	return exit{code: status.ExitStatus()}, nil
}

// nodeProgram returns the node of the image if it is built, or that of the host, with links
// resolved.
func nodeProgram(t *testing.T) string {
	t.Helper()
	home := os.Getenv("AIRLOCK_HOME")
	if home == "" {
		home = filepath.Join(testenv.RepoRoot(t), ".airlock")
	}
	images := filepath.Join(home, "images", "node")
	if current, err := os.ReadFile(filepath.Join(images, "current")); err == nil {
		path := filepath.Join(images, strings.TrimSpace(string(current)), "rootfs", "usr", "bin", "node")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the contract's cases need node: %v", err)
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// sampled is the interval of the cases that run without a sandbox, and cold, where sandboxes run all of them.
const sampled = 4

func TestCases(t *testing.T) {
	cases, err := contract.Cases()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i, c := range cases {
		count[c.Language]++
		for _, start := range []struct {
			name  string
			ahead bool
		}{{"cold", false}, {"ahead", true}} {
			t.Run(c.Name+"/"+start.name, func(t *testing.T) {
				t.Parallel()
				if c.Want.Sandbox {
					t.Skip("needs the limits of a sandbox")
				}
				if start.ahead && testing.Short() {
					t.Skip("the same case as the cold one, in a guest that has loaded ahead")
				}
				if testenv.WantsSandboxes() && (start.ahead || i%sampled != 0) {
					t.Skip("TestCasesInSandbox runs all cases, in guests that have loaded ahead")
				}
				got := runGuest(t, c.Language, string(c.Code), start.ahead)
				if err := c.Check(got.line, got.stdout, got.stderr); err != nil {
					t.Errorf("%s\n%v\nstderr: %s", c.About, err, strings.TrimSpace(got.stderr))
				}
			})
		}
	}
	for _, language := range []string{"python", "node"} {
		if count[language] < 60 {
			t.Errorf("%s: got %d cases, want at least 60", language, count[language])
		}
	}
}
