package runsc_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
)

// owner is the user of mounted directories, and of the programs.
const owner = 41000

// owned makes a directory of owner with files: name → content.
func owned(t *testing.T, files map[string]string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make another user's files")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, name), owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, owner, owner); err != nil {
		t.Fatal(err)
	}
	return dir
}

// programs starts shell scripts as programs of sandboxes.
type programs struct {
	*runner.Runner
	request runner.Request
}

func newPrograms(t *testing.T) programs {
	env := testenv.Sandbox(t)
	dir, err := os.MkdirTemp("/tmp", "airlock-")
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(newDriver(t, env), &runner.Options{Logger: logger(t), StateDir: filepath.Join(dir, "s"),
		Pool: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return programs{r, runner.Request{Image: image(t, env.Home, "python"), Limits: runner.DefaultLimits(),
		User: runner.User{UID: owner, GID: owner}}}
}

// run passes input to a script in a sandbox, and returns what it wrote until its end, and the end.
func (p programs) run(t *testing.T, input, script string, mounts ...runner.Mount) (string, runner.Exit) {
	t.Helper()
	req := p.request
	req.Image.Args, req.Mounts = []string{"/bin/sh", "-c", script}, mounts
	program, err := p.StartProgram(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	}()
	stdin, stdout, stderr := program.Stdio()
	go func() {
		_, _ = io.WriteString(stdin, input) // the script may end before it has read everything
		_ = stdin.Close()
	}()
	var said []byte
	for _, stream := range []io.Reader{stdout, stderr} {
		text, err := io.ReadAll(stream)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, text...)
	}
	exit, err := program.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(said), exit
}

// Issue 30: the pipes of a program in a sandbox are its own, from the first byte, and its end is known.
func TestProgramHasPipes(t *testing.T) {
	p := newPrograms(t)
	got, exit := p.run(t, "one\ntwo\n", "cat; echo three >&2; exit 7")
	if want := "one\ntwo\nthree\n"; got != want || exit.Code != 7 {
		t.Errorf("got %q and %+v, want %q and status 7", got, exit, want)
	}
}

// Issue 30: a server sees what it was given of the host, changes only what it may change, and no link leads out of it.
func TestMountsOfPrograms(t *testing.T) {
	p := newPrograms(t)
	outside := owned(t, map[string]string{"secret": "host secret"})
	notes := owned(t, map[string]string{"note": "a private note"})
	work := owned(t, map[string]string{"draft": "old"})
	if err := os.Symlink(outside, filepath.Join(notes, "directory")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(notes, "file")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/root/etc/hostname", filepath.Join(notes, "root")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(notes, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	mounts := []runner.Mount{
		{Source: notes, Target: "/tmp/notes", Live: true},
		{Source: work, Target: "/workspace/work", Live: true, Writable: true},
	}
	script := `
cd /tmp/notes && cat note; echo
echo changed > note; echo new > other; rm note; mkdir d; chmod 777 note; ln -s / link
cat directory/secret file root; cat ../../../etc/hostname; cat fifo &
cd /workspace/work && echo new > draft && echo more > file && mkdir sub && ln -s ` + outside + ` sub/out && cat sub/out/secret
mknod device c 1 3; mkfifo pipe; mv draft renamed && cat renamed
`
	said, _ := p.run(t, "", script, mounts...)
	if !strings.Contains(said, "a private note") || strings.Contains(said, "host secret") ||
		!strings.Contains(said, "new\n") {
		t.Errorf("the script saw %q", said)
	}
	text, err := os.ReadFile(filepath.Join(notes, "note"))
	if err != nil || string(text) != "a private note" {
		t.Errorf("the read-only note: got %q, %v", text, err)
	}
	if entries, err := os.ReadDir(notes); err != nil || len(entries) != 5 {
		t.Errorf("the read-only directory: got %v, %v", entries, err)
	}
	text, err = os.ReadFile(filepath.Join(work, "renamed"))
	if err != nil || string(text) != "new\n" {
		t.Errorf("the file that was written: got %q, %v", text, err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(work, "file"), &stat); err != nil || stat.Uid != owner || stat.Gid != owner {
		t.Errorf("the file that was made: got owner %d:%d, %v", stat.Uid, stat.Gid, err)
	}
	for _, name := range []string{"device", "pipe"} {
		if err := unix.Lstat(filepath.Join(work, name), &stat); err == nil && stat.Mode&unix.S_IFMT == unix.S_IFCHR {
			t.Errorf("%s: a special file was made on the host", name)
		}
	}
}

// Issue 30: the directory of a mount may not be, or become, a link to another one.
func TestMountsAreNoLinks(t *testing.T) {
	p := newPrograms(t)
	outside := owned(t, map[string]string{"secret": "host secret"})
	link := filepath.Join(owned(t, nil), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	req := p.request
	req.Image.Args = []string{"/bin/sh", "-c", "cat /tmp/mount/secret"}
	req.Mounts = []runner.Mount{{Source: link, Target: "/tmp/mount", Live: true}}
	if program, err := p.StartProgram(t.Context(), req); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v, want a refusal of the link", err)
		if err == nil {
			program.Close()
		}
	}
}

// Issue 30: a program that ends at once, before anybody reads its pipes, leaves nothing behind.
func TestProgramsEndInALoop(t *testing.T) {
	p := newPrograms(t)
	for range 5 {
		if said, exit := p.run(t, "", "kill -9 1; kill -9 -1; exit 3"); exit.Code == 0 {
			t.Errorf("got %q and %+v, want an end by itself", said, exit)
		}
	}
	if load := p.Load(); load.InUse != 0 || load.Waiting != 0 {
		t.Errorf("got %+v, want nothing in use", load)
	}
}
