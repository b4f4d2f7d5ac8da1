// Package dist proves what users get who have no checkout: the Debian package of
// `make dist`, in a root file system that has nothing else of Airlock's.
package dist

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// inside runs its arguments with $1 as the root of the file system. The caller provides a
// new mount namespace and a new PID namespace.
const inside = `
set -e
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
cd "$root"
mkdir -p before
pivot_root . before
if command -v umount >/dev/null; then # the container image has none
	umount -l /before
	rmdir /before
fi
exec "$@"
`

// system is a separate Debian system.
type system struct {
	t    *testing.T
	root string
}

// newSystem unpacks the clean root of `make setup`, which has the packages that
// ours depends on in apt's cache, and the Debian package in /root.
func newSystem(t *testing.T) (*system, testenv.Env) {
	t.Helper()
	env := testenv.Sandbox(t)
	if os.Getuid() != 0 {
		t.Skip("a root file system of its own needs root")
	}
	bin := filepath.Join(testenv.RepoRoot(t), "bin")
	packages, err := filepath.Glob(filepath.Join(bin, "dist", "airlock_*_"+runtime.GOARCH+".deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("bin/dist has %q (%v), want one Debian package: run `make dist`", packages, err)
	}
	s := &system{t: t, root: t.TempDir()}
	if out, err := exec.Command("tar", "--extract", "--numeric-owner", "--file", filepath.Join(bin, "clean-root.tar"),
		"--directory", s.root).CombinedOutput(); err != nil {
		t.Fatalf("unpacking bin/clean-root.tar (make setup): %v\n%s", err, out)
	}
	if err := os.Link(packages[0], filepath.Join(s.root, "root", "airlock.deb")); err != nil {
		content, err := os.ReadFile(packages[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.root, "root", "airlock.deb"), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s, env
}

// run runs a script in the system and returns what it printed on stdout.
func (s *system) run(script string) string {
	s.t.Helper()
	// The script is the first process of a PID namespace, so all its processes end with it.
	cmd := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", inside, "inside",
		s.root, "/bin/sh", "-ec", script)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
		"LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		s.t.Fatalf("%s: %v\nstdout: %s\nstderr: %s", script, err, out, exit.Stderr)
	}
	return string(out)
}

// initWithoutImages runs airlock init on a system that has a host with a server, and no images (issue 27). Init must
// not change the host's file if Airlock cannot start, and otherwise build the images, start Airlock, and move the
// server.
func (s *system) initWithoutImages() {
	s.t.Helper()
	server := upstreamtest.Program(s.t)
	if out, err := exec.Command("cp", server, filepath.Join(s.root, "root", "notes")).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	const before = `{"mcpServers":{"notes":{"command":"/root/notes"}}}`
	s.run("mkdir -p /root/.cursor && printf '%s' '" + before + "' >/root/.cursor/mcp.json")
	const file = "cat /root/.cursor/mcp.json"

	// Without their packages, images cannot be built, because this root has no network.
	const fails = `mv /var/lib/airlock/images /root/kept; status=0; airlock init --yes >/root/printed 2>&1 || status=$?
		rm -rf /var/lib/airlock/images; mv /root/kept /var/lib/airlock/images; echo $status; tail -n 2 /root/printed`
	if out := s.run(fails); !strings.HasPrefix(out, "1\n") || !strings.Contains(out, "no host's file was changed") {
		s.t.Errorf("init that can build no image printed %s", out)
	}
	if out := s.run(file); out != before {
		s.t.Errorf("init failed and left the host's file as %s", out)
	}

	out := s.run("airlock init --yes 2>&1")
	for _, want := range []string{"building the sandbox images that are missing: ", "starting Airlock once", "Done."} {
		if !strings.Contains(out, want) {
			s.t.Errorf("init printed %s\nwant %q in it", out, want)
		}
	}
	if out := s.run(file); !strings.Contains(out, `"airlock"`) || strings.Contains(out, "/root/notes") {
		s.t.Errorf("init left the host's file as %s", out)
	}
	s.run("airlock init --undo")
	if out := s.run(file); out != before {
		s.t.Errorf("init --undo left the host's file as %s", out)
	}
}

func TestAPackageInstallsRunsAndLeaves(t *testing.T) {
	s, env := newSystem(t)
	const install = "apt-get --yes --no-install-recommends install /root/airlock.deb"
	if out := s.run(install); !strings.Contains(out, "airlock images build") {
		t.Errorf("the installation does not say what comes next:\n%s", out)
	}
	if out := s.run("airlock version && airlock --version"); !strings.HasPrefix(out, "airlock ") {
		t.Errorf("airlock version printed %q", out)
	}
	out := s.run("readlink -f /usr/bin/airlock; zcat /usr/share/man/man1/airlock.1.gz | head -n 1")
	if !strings.Contains(out, "/usr/lib/airlock/airlock\n.TH AIRLOCK 1") {
		t.Errorf("the program or its manual page is elsewhere: %q", out)
	}

	// The packages of the images were fetched when those of this machine were built.
	bases := filepath.Join(s.root, "var/lib/airlock/images/bases")
	if err := os.MkdirAll(filepath.Dir(bases), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", filepath.Join(env.Home, "images/bases"),
		bases).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.initWithoutImages()
	const program = "cd /root && printf 'import sys\nresult = {\"answer\": 6 * 7, \"python\": " +
		"sys.version_info[:2]}\n' >first.py && airlock run first.py"
	var envelope struct {
		Result struct {
			OK   bool
			Data map[string]any
		}
	}
	if out := s.run(program); json.Unmarshal([]byte(out), &envelope) != nil || !envelope.Result.OK ||
		envelope.Result.Data["answer"] != 42.0 {
		t.Errorf("the first program printed %s", out)
	}

	// An upgrade keeps what there is, and so does a removal with everything.
	s.run("dpkg --install /root/airlock.deb")
	if out := s.run("airlock runs list --json | wc -l"); strings.TrimSpace(out) == "0" {
		t.Error("the run is not listed after the package was installed anew")
	}
	files := s.run(`for f in $(dpkg --listfiles airlock); do if [ -f "$f" ] || [ -L "$f" ]; then echo "$f"; fi; done`)
	s.run("apt-get --yes purge airlock")
	for _, file := range strings.Fields(files) {
		if _, err := os.Lstat(filepath.Join(s.root, file)); err == nil {
			t.Errorf("%s is still there after the package was removed", file)
		}
	}
	if _, err := os.Stat(filepath.Join(s.root, "var/lib/airlock/audit")); err != nil {
		t.Errorf("the audit log went with the package: %v", err)
	}
}
