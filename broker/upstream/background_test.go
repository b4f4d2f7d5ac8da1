package upstream_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/broker/upstream/upstreamtest"
	"github.com/airlock-mcp/airlock/catalog"
)

// switchable is a server that is good while the file at the returned path is
// there, and runs another command of the shell otherwise.
func switchable(t testing.TB, otherwise string) (config upstream.Config, on string) {
	t.Helper()
	good, _ := upstreamtest.Fake(t, "good")
	on = filepath.Join(t.TempDir(), "on")
	script := `if [ -e "$0" ]; then exec "$@"; fi; ` + otherwise
	return upstream.Config{ID: "good", Command: "sh",
		Args: append([]string{"-c", script, on, good.Command}, good.Args...)}, on
}

func touch(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// start is connect without waiting for the servers.
func start(t testing.TB, opts *upstream.Options, configs ...upstream.Config) *upstream.Set {
	t.Helper()
	set, err := upstream.New(configs, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	set.Start(t.Context())
	return set
}

// Start must not wait: the servers of this test would hold it for an hour.
func TestStartWaitsForNoServer(t *testing.T) {
	good, _ := upstreamtest.Fake(t, "good")
	configs := []upstream.Config{good, {ID: "missing", Command: "airlock-no-such-command"}}
	for _, mode := range []string{"silent", "deaf", "only-rubbish"} {
		config, _ := upstreamtest.Fake(t, mode)
		config.StartTimeout = time.Hour
		configs = append(configs, config)
	}
	set := start(t, nil, configs...)
	if _, err := set.Call(t.Context(), "good", "echo", nil); err != nil {
		t.Errorf("a call of a good server beside hung ones: %v", err)
	}
	if err := set.Await(t.Context(), "good", "missing"); err != nil {
		t.Errorf("waiting for the servers that answer: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := set.Await(ended, "silent"); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a hung server: got %v, want the end of the context", err)
	}
	for _, server := range set.Servers() {
		switch server.ID {
		case "good":
			if server.Problem != "" || len(server.Tools) == 0 || server.Retrying {
				t.Errorf("got %+v for the good server, want tools", server)
			}
		case "missing":
			if !strings.Contains(server.Problem, "was not found") || !server.Retrying {
				t.Errorf("got %q (retrying %v), want that the command was not found", server.Problem, server.Retrying)
			}
		default:
			if server.Problem != "it is still starting" || !server.Retrying {
				t.Errorf("got %q (retrying %v) for a hung server, want that it is still starting", server.Problem,
					server.Retrying)
			}
		}
	}
}

func TestMissingServerComesBack(t *testing.T) {
	config, on := switchable(t, "echo 'Error: no database' >&2; exit 1")
	changes := make(chan string, 10)
	set := start(t, &upstream.Options{OnChange: func(id string) { changes <- id }}, config)
	<-changes
	server := set.Servers()[0]
	if !strings.Contains(server.Problem, "no database") || !server.Retrying {
		t.Errorf("got %q (retrying %v), want its error", server.Problem, server.Retrying)
	}
	var failed *upstream.CallError
	if _, err := set.Call(t.Context(), "good", "echo", nil); !errors.As(err, &failed) || !failed.Retryable {
		t.Errorf("a call meanwhile: got %v, want a retryable error", err)
	}
	touch(t, on)
	<-changes
	if server := set.Servers()[0]; server.Problem != "" || len(server.Tools) == 0 || server.Retrying {
		t.Errorf("got %+v, want tools", server)
	}
	if _, err := set.Call(t.Context(), "good", "echo", nil); err != nil {
		t.Errorf("a call then: %v", err)
	}
}

// cachedSet fills a cache with the tools of a server and ends that server.
func cachedSet(t testing.TB, config upstream.Config, on string) (dir string, known []catalog.Server) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "lists")
	touch(t, on)
	set := connect(t, &upstream.Options{CacheDir: dir}, config)
	known = set.Servers()
	if known[0].Problem != "" || len(known[0].Tools) == 0 {
		t.Fatalf("got %+v, want tools", known[0])
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(on); err != nil {
		t.Fatal(err)
	}
	return dir, known
}

func TestCachedToolsAreKnownAtOnce(t *testing.T) {
	config, on := switchable(t, "exec sleep 3600")
	dir, want := cachedSet(t, config, on)
	set := start(t, &upstream.Options{CacheDir: dir}, config)
	if diff := cmp.Diff(want, set.Servers()); diff != "" {
		t.Errorf("the cached list differs from the server's (-want +got):\n%s", diff)
	}
	if err := set.Await(t.Context()); err != nil {
		t.Errorf("waiting for a server whose tools are known: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var failed *upstream.CallError
	if _, err := set.Call(ctx, "good", "echo", nil); !errors.As(err, &failed) || failed.Type != upstream.Timeout ||
		!failed.Retryable {
		t.Errorf("a call of the hung server: got %v, want a retryable timeout", err)
	}
}

func TestUnreachableServerKeepsItsCachedTools(t *testing.T) {
	config, on := switchable(t, "echo 'Error: no database' >&2; exit 1")
	dir, want := cachedSet(t, config, on)
	changes := make(chan string, 10)
	set := start(t, &upstream.Options{CacheDir: dir, OnChange: func(id string) { changes <- id }}, config)
	<-changes
	got := set.Servers()[0]
	if got.Problem != "" || !strings.Contains(got.Unreachable, "no database") || !got.Retrying {
		t.Errorf("got problem %q, unreachable %q, retrying %v, want why it cannot be reached", got.Problem,
			got.Unreachable, got.Retrying)
	}
	if diff := cmp.Diff(want[0].Tools, got.Tools); diff != "" {
		t.Errorf("tools differ (-want +got):\n%s", diff)
	}
	touch(t, on)
	<-changes
	if got := set.Servers()[0]; got.Unreachable != "" || got.Retrying {
		t.Errorf("got unreachable %q, retrying %v after it came back", got.Unreachable, got.Retrying)
	}
}

func TestRestoreStartsNothing(t *testing.T) {
	config, on := switchable(t, "exit 1")
	dir, want := cachedSet(t, config, on)
	set, err := upstream.New([]upstream.Config{config}, &upstream.Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	set.Restore()
	if diff := cmp.Diff(want, set.Servers()); diff != "" {
		t.Errorf("the cached list differs from the server's (-want +got):\n%s", diff)
	}
	if err := set.Problem("good"); err != nil {
		t.Errorf("got %v, want that nothing was tried", err)
	}
}

// entry returns the path of the only entry of a cache.
func entry(t testing.TB, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.list"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("got entries %q, %v, want one", paths, err)
	}
	return paths[0]
}

func TestDamagedEntriesAreNotUsed(t *testing.T) {
	edit := func(change func(string) string) func(testing.TB, string) {
		return func(t testing.TB, path string) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := change(string(raw))
			if changed == string(raw) {
				t.Fatal("the entry was not changed")
			}
			if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(old, with string) func(testing.TB, string) {
		return edit(func(s string) string { return strings.Replace(s, old, with, 1) })
	}
	tests := []struct {
		name   string
		damage func(testing.TB, string)
	}{
		{"empty", edit(func(string) string { return "" })},
		{"no header", edit(func(s string) string { return s[strings.Index(s, "\n")+1:] })},
		{"cut", edit(func(s string) string { return s[:len(s)-1] })},
		{"longer", edit(func(s string) string { return s + "x" })},
		{"a changed definition", replace("Returns its arguments.", "Returns your arguments")},
		{"another format", replace(`"format":1`, `"format":2`)},
		{"of another server", replace(`"identity":"sha256:`, `"identity":"sha256:0`)},
		{"wrong lengths", replace(`"sizes":[`, `"sizes":[-1,`)},
		{"too old", replace(`"saved":"2`, `"saved":"1`)},
		{"a symbolic link", func(t testing.TB, path string) {
			if err := os.Rename(path, path+".moved"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path+".moved", path); err != nil {
				t.Fatal(err)
			}
		}},
		{"a named pipe", func(t testing.TB, path string) {
			if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
		{"a directory", func(t testing.TB, path string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		}},
		{"too large", func(t testing.TB, path string) {
			if err := os.Truncate(path, 1<<30); err != nil {
				t.Fatal(err)
			}
		}},
	}
	config, on := switchable(t, "exec sleep 3600")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, _ := cachedSet(t, config, on)
			test.damage(t, entry(t, dir))
			set := start(t, &upstream.Options{CacheDir: dir}, config)
			if got := set.Servers()[0]; got.Problem != "it is still starting" || len(got.Tools) > 0 {
				t.Errorf("got %+v, want a server without a list", got)
			}
		})
	}
}

// An entry belongs to one server in one configuration, and holds the value of no
// variable, header or query.
func TestEntriesBelongToAConfiguration(t *testing.T) {
	config, on := switchable(t, "exec sleep 3600")
	config.Env = map[string]string{"TOKEN": "held-value-1"}
	dir, _ := cachedSet(t, config, on)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "held-value") {
			t.Errorf("%s holds the value of a variable", path)
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*upstream.Config)
		used   bool
	}{
		{"another value of a variable", func(c *upstream.Config) { c.Env = map[string]string{"TOKEN": "held-value-2"} },
			true},
		{"another variable", func(c *upstream.Config) { c.Env = map[string]string{"KEY": "held-value-1"} }, false},
		{"another argument", func(c *upstream.Config) { c.Args = append([]string{}, append(c.Args, "-x")...) }, false},
		{"another name", func(c *upstream.Config) { c.ID = "other" }, false},
		{"another directory", func(c *upstream.Config) { c.Dir = t.TempDir() }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			other := config
			test.change(&other)
			set, err := upstream.New([]upstream.Config{other}, &upstream.Options{CacheDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			set.Restore()
			if used := len(set.Servers()[0].Tools) > 0; used != test.used {
				t.Errorf("got the entry used: %v, want %v", used, test.used)
			}
		})
	}
}
