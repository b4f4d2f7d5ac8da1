package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestHome(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		uid  int
		want string // empty: an error
	}{
		{"the variable decides", map[string]string{"AIRLOCK_HOME": "/srv/a/"}, 0, "/srv/a"},
		{"root has the system's place", map[string]string{"HOME": "/root"}, 0, "/var/lib/airlock"},
		{"a user has the XDG data directory", map[string]string{"XDG_DATA_HOME": "/d", "HOME": "/h"}, 7, "/d/airlock"},
		{"a relative XDG directory is ignored", map[string]string{"XDG_DATA_HOME": "d", "HOME": "/h"}, 7,
			"/h/.local/share/airlock"},
		{"no place at all is an error", nil, 7, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := home(env(test.env), test.uid)
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestHomeMakesRelativePathsAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got, err := home(env(map[string]string{"AIRLOCK_HOME": "state"}), 7)
	if want := filepath.Join(cwd, "state"); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestRunIsShortAndPerHome(t *testing.T) {
	users := t.TempDir()
	if err := os.Mkdir(filepath.Join(users, "1000"), 0o700); err != nil {
		t.Fatal(err)
	}
	a, b := run("/home/a/.local/share/airlock", 1000, users), run("/home/b/.local/share/airlock", 1000, users)
	a, b = strings.Replace(a, users, "/run/user", 1), strings.Replace(b, users, "/run/user", 1)
	if a == b {
		t.Errorf("two homes share the run directory %q", a)
	}
	const longestID = 63
	if got, limit := len(a)+1+longestID+len("/broker.sock"), 107; got > limit {
		t.Errorf("a socket's path has %d bytes, want at most %d", got, limit)
	}
	for name, test := range map[string]struct{ home, want string }{
		"a short home":          {"/h", "/h/run"},
		"issue 27: a long home": {"/home/" + strings.Repeat("long", 60), "/tmp/airlock-2000/"},
	} {
		if got := run(test.home, 2000, users); !strings.HasPrefix(got, test.want) || len(got) > maxRun {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestWriteFileReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, want := range []string{"first", "2"} {
		if err := WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	assertNames(t, filepath.Dir(path), "f")
}

func TestWriteFileLeavesNothingWhenItCannot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by a directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("x"), 0o600); err == nil {
		t.Error("writing over a directory: got no error")
	}
	assertNames(t, dir, "taken")
}

func TestPublishDirKeepsTheFirst(t *testing.T) {
	dir := t.TempDir()
	final := filepath.Join(dir, "final")
	for _, name := range []string{"one", "two"} {
		staged := filepath.Join(dir, name)
		if err := os.Mkdir(staged, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(staged, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := PublishDir(staged, final); err != nil {
			t.Fatal(err)
		}
	}
	assertNames(t, final, "one")
	assertNames(t, dir, "final")
}

func TestPublishDirWithoutSource(t *testing.T) {
	dir := t.TempDir()
	err := PublishDir(filepath.Join(dir, "none"), filepath.Join(dir, "final"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want an error that the directory is missing", err)
	}
}

func TestCreateFileNeverReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := CreateFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CreateFile(path, []byte("second"), 0o600); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second time: got %v, want %v", err, os.ErrExist)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("got %q, %v, want what was first", got, err)
	}
	assertNames(t, filepath.Dir(path), "f")
}

// Both ways of creating a file, on every file system that knows both.
func TestCreatedFilesAreWholeAndAlone(t *testing.T) {
	hello := func(file *os.File) error {
		_, err := file.WriteString("hello")
		return err
	}
	for name, create := range map[string]func(string, fs.FileMode, func(*os.File) error) (*os.File,
		error){"unnamed": createUnnamed, "named": createNamed} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			file, err := create(path, 0o640, hello)
			if errors.Is(err, errNoUnnamed) {
				t.Skip("every file has a name here")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if got, err := os.ReadFile(path); err != nil || string(got) != "hello" {
				t.Errorf("got %q, %v", got, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("got %v, %v, want mode 0640", info, err)
			}
			if _, err := create(path, 0o600, hello); !errors.Is(err, fs.ErrExist) {
				t.Errorf("where one exists: got %v", err)
			}
			if _, err := create(path+"2", 0o600, func(*os.File) error { return io.ErrShortWrite }); !errors.Is(
				err, io.ErrShortWrite) {
				t.Errorf("where writing fails: got %v", err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("beside it there is %v, %v", left, err)
			}
		})
	}
}

func TestCreateHeldShowsThatItsMakerLives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	lock, err := CreateHeld(path, []byte("x"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if !IsHeld(path) {
		t.Error("while the lock is held: got not held")
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if IsHeld(path) || IsHeld(path+"-missing") {
		t.Error("after the release, or without a file: got held")
	}
	assertNames(t, filepath.Dir(path), "f")
}

func TestSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "k")
	made := 0
	fresh := func() ([]byte, error) { made++; return []byte("secret"), nil }
	for range 2 {
		if got, err := Secret(path, fresh); err != nil || string(got) != "secret" {
			t.Fatalf("got %q, %v, want the secret", got, err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times, want once", made)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Secret(path, fresh); err == nil || !strings.Contains(err.Error(), "read by others") {
		t.Errorf("with a mode for others: got %v, want a refusal", err)
	}
}

func TestWithLockExcludesOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	err = WithLock(file, Exclusive, func() error {
		_, err := TryAcquire(path, Shared)
		return err
	})
	if !errors.Is(err, ErrLocked) {
		t.Errorf("meanwhile: got %v, want %v", err, ErrLocked)
	}
	lock, err := TryAcquire(path, Exclusive)
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

func TestLocksExcludeEachOther(t *testing.T) {
	tests := []struct {
		name         string
		first, other Mode
		want         error
	}{
		{"two writers", Exclusive, Exclusive, ErrLocked},
		{"a writer after a reader", Shared, Exclusive, ErrLocked},
		{"a reader after a writer", Exclusive, Shared, ErrLocked},
		{"two readers", Shared, Shared, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			first, err := TryAcquire(path, test.first)
			if err != nil {
				t.Fatal(err)
			}
			other, err := TryAcquire(path, test.other)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if other != nil {
				defer other.Release()
			}
			if err := errors.Join(first.Release(), first.Release()); err != nil {
				t.Errorf("releasing twice: %v", err)
			}
		})
	}
}

func TestTryHold(t *testing.T) {
	dir := t.TempDir()
	lock, err := TryHold(dir, Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := TryHold(dir, Exclusive); !errors.Is(err, ErrLocked) {
		t.Errorf("a held directory: got %v, want %v", err, ErrLocked)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := TryHold(missing, Shared); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: got %v, want %v", err, os.ErrNotExist)
	}
	assertNames(t, dir)
}

func TestAcquireWaitsForRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryAcquire(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() {
		second, err := Acquire(t.Context(), path, Exclusive)
		if err == nil {
			err = second.Release()
		}
		waited <- err
	}()
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryAcquire(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Acquire(ctx, path, Exclusive); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// assertNames checks that dir holds exactly the given names.
func assertNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if len(got) != len(want) || (len(got) > 0 && got[0] != want[0]) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}
