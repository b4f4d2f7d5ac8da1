package upstream

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChildEnv(t *testing.T) {
	if !slices.IsSorted(inherited) {
		t.Error("the list of inherited variables is not sorted")
	}
	environ := []string{"PATH=/bin", "HOME=/root", "AIRLOCK_KEY=secret", "AWS_SECRET_ACCESS_KEY=secret",
		"LD_PRELOAD=/x.so", "npm_config__authToken=secret",
		"https_proxy=http://proxy:3128", "odd"}
	got := childEnv(environ, map[string]string{"HOME": "/srv", "TOKEN": "a=b"})
	want := []string{"HOME=/srv", "PATH=/bin", "TOKEN=a=b", "https_proxy=http://proxy:3128"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
}

func TestFindCommand(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server, local := write("bin/server", 0o755), write("work/run", 0o755)
	write("bin/plain", 0o644)
	env := []string{"PATH=relative:" + filepath.Join(dir, "nowhere") + ":" + filepath.Join(dir, "bin")}
	work := filepath.Join(dir, "work")
	tests := []struct {
		name, command, want string
		err                 error
	}{
		{"in PATH", "server", server, nil},
		{"absolute", server, server, nil},
		{"relative to the working directory", "./run", local, nil},
		{"a relative directory in PATH is not looked into", "run", "", os.ErrNotExist},
		{"nowhere", "nothing", "", os.ErrNotExist},
		{"not executable", "plain", "", os.ErrPermission},
		{"a directory", work, work, os.ErrPermission},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := findCommand(test.command, work, env)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestBackoffGrowsAndStops(t *testing.T) {
	want := []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
		32 * time.Second, time.Minute, time.Minute}
	for n, want := range want {
		if got := backoff(n); got != want {
			t.Errorf("after %d failures: got %s, want %s", n, got, want)
		}
	}
	if got := backoff(1 << 40); got != time.Minute {
		t.Errorf("got %s, want a minute at most", got)
	}
}

func TestReplaceSecret(t *testing.T) {
	tests := []struct{ name, text, secret, want string }{
		{"a key", "bad key sk-12345678", "sk-12345678", "bad key [redacted]"},
		{"a bearer token alone", "token abcdefgh is no good, bearer of", "Bearer abcdefgh",
			"token [redacted] is no good, bearer of"},
		{"too short to be one", "port 80 is taken", "80", "port 80 is taken"},
		{"none", "text", "", "text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := replaceSecret(test.text, test.secret); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
