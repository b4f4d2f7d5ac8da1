package suspended

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A run comes back as it was stored, nothing of it can be read in its file, and a changed, truncated, exchanged or
// foreign file is refused.
func TestWhatIsStoredOfASuspendedRunIsEncrypted(t *testing.T) {
	dir := t.TempDir()
	open := func(keys string) *Store {
		t.Helper()
		s, err := Open(filepath.Join(dir, "suspended"), filepath.Join(dir, keys))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open("keys")
	secret := rand.Text()
	for _, run := range []string{"run_a", "run_b"} {
		if err := s.Put(run, []string{secret, run}, About{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := open("keys").Get("run_a", &got); err != nil || !slices.Equal(got, []string{secret, "run_a"}) {
		t.Fatalf("got %q, %v", got, err)
	}
	path := filepath.Join(s.Dir(), "run_a.run")
	file, err := os.ReadFile(path)
	if err != nil || bytes.Contains(file, []byte(secret)) {
		t.Fatalf("the file can be read, or not: %v", err)
	}
	other, err := os.ReadFile(filepath.Join(s.Dir(), "run_b.run"))
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string][]byte{
		"changed":   slices.Concat(file[:len(file)-1], []byte{file[len(file)-1] ^ 1}),
		"truncated": file[:len(file)-20],
		"exchanged": other,
		"empty":     nil,
		"forged":    []byte("age-encryption.org/v1\n"),
	} {
		if err := os.WriteFile(path, wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Get("run_a", &got); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want %v", name, err, ErrDamaged)
		}
	}
	if err := open("other keys").Get("run_b", &got); !errors.Is(err, ErrDamaged) {
		t.Errorf("another key: got %v, want %v", err, ErrDamaged)
	}
	for _, id := range []string{"../run_a", "", "run_", "apr_a"} {
		if s.Put(id, 1, About{}) == nil || s.Get(id, &got) == nil {
			t.Errorf("%q was taken for a run", id)
		}
	}
	for range 2 {
		if err := s.Remove("run_a"); err != nil {
			t.Error(err)
		}
	}
	if runs, err := s.List(); err != nil || !slices.Equal(runs, []string{"run_b"}) {
		t.Errorf("got %q, %v", runs, err)
	}
}

// Unfinished files of a killed process are removed (issue 29).
func TestUnfinishedFilesAreRemoved(t *testing.T) {
	dir, keys := t.TempDir(), t.TempDir()
	left, other := filepath.Join(dir, ".run_1.run-1638272980"), filepath.Join(dir, "base")
	for _, path := range []string{left, other} {
		if err := os.WriteFile(path, []byte("sealed"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, keys); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished file: got %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
