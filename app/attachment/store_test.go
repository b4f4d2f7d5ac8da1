package attachment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
)

var ann = caller.Owner{Principal: "ann", Kind: caller.Local, Session: "ses_1"}

func open(t *testing.T, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(content string) Inspected { return Inspect([]byte(content), "text/plain", "") }

func TestStoreKeepsWhatRunsAttach(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	draft := s.Begin("run_1", ann, DefaultLimits)
	var names []string
	for i, wanted := range []string{"a.txt", "a.txt", "../../etc/passwd", "", "result.json", "c\nd\x1b[2J.txt",
		strings.Repeat("ä", 200) + ".csv", "nul\x00.txt", "..", `C:\x\y.txt`} {
		file, err := draft.Add(text(fmt.Sprint("secret content ", i)), wanted)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, file.Name)
	}
	want := []string{"a.txt", "a-2.txt", "passwd.txt", "attachment-4.txt", "result-2.json", "c d[2J.txt",
		strings.Repeat("ä", 48) + ".csv", "nul.txt", "attachment-9.txt", "y.txt"}
	if strings.Join(names, "|") != strings.Join(want, "|") {
		t.Errorf("got names %q, want %q", names, want)
	}
	if again, err := draft.Add(text("secret content 0"), "a.txt"); err != nil || again.Name != "a.txt" {
		t.Errorf("the same file again: got %q and %v, want the first", again.Name, err)
	}
	for i, name := range names {
		runID, parsed, ok := ParseURI(URI("run_1", name))
		if !ok {
			t.Fatalf("%q is no URI of a file", URI("run_1", name))
		}
		file, content, err := open(t, dir, Options{}).Read(runID, parsed)
		if err != nil || string(content) != fmt.Sprint("secret content ", i) || file.MIME == "" {
			t.Errorf("%q: got %q, %v and %v", name, content, file, err)
		}
	}
	if set, err := s.Files("run_1"); err != nil || set.Owner != ann || len(set.Files) != len(names) {
		t.Errorf("got %v and %v", set, err)
	}
	encryptedAndClosed(t, dir)
}

// encryptedAndClosed checks that no file can be read by others, or by anybody without the key.
func encryptedAndClosed(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if entry.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("secret content")) || bytes.Contains(content, []byte("passwd")) {
			t.Errorf("%s is not encrypted", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDraftIsBounded(t *testing.T) {
	for _, store := range []*Store{open(t, t.TempDir(), Options{}), nil} {
		draft := store.Begin("run_1", ann, Limits{Files: 3, FileBytes: 10, Bytes: 25})
		for i, test := range []struct {
			content string
			want    string // in the error; "" for none
		}{
			{"", "empty"}, {"12345678901", "one may have 10"}, {"1234567890", ""}, {"123456789b", ""},
			{"123456", "may attach 25"}, {"12345", ""}, {"1", "3 files"},
		} {
			_, err := draft.Add(text(test.content), "")
			var limit *LimitError
			if (err == nil) != (test.want == "") || err != nil &&
				(!errors.As(err, &limit) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("file %d: got %v, want %q", i, err, test.want)
			}
		}
		if _, err := draft.AddResult([]byte(`"a large result"`)); err != nil {
			t.Errorf("the result: %v", err)
		}
	}
}

func TestStoreLetsGoOfWhatIsOldOrTooMuch(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	s := open(t, dir, Options{Size: 4096, Keep: time.Hour, Now: func() time.Time { return now }})
	for i := range 8 {
		id := fmt.Sprintf("run_%d", i)
		if _, err := s.Begin(id, ann, DefaultLimits).Add(text(strings.Repeat("x", 600)), ""); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, id), now, now.Add(time.Duration(i-8)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Files("run_0"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the oldest: got %v, want %v", err, ErrNotFound)
	}
	if _, err := s.Files("run_7"); err != nil {
		t.Errorf("the newest: %v", err)
	}
	now = now.Add(2 * time.Hour)
	if _, _, err := s.Read("run_7", "attachment-1.txt"); !errors.Is(err, ErrNotFound) {
		t.Errorf("expired: got %v, want %v", err, ErrNotFound)
	}
	open(t, dir, Options{Keep: time.Hour, Now: func() time.Time { return now }})
	if left, err := filepath.Glob(filepath.Join(dir, "run_*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestStoreTellsOwnersApart(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	bob := ann
	bob.Session = "ses_2"
	for i, owner := range []caller.Owner{ann, bob, ann} {
		if _, err := s.Begin(fmt.Sprintf("run_%d", i), owner, DefaultLimits).Add(text("x"), ""); err != nil {
			t.Fatal(err)
		}
	}
	who := caller.Caller{Principal: ann.Principal, Kind: ann.Kind, Session: ann.Session}
	if sets := s.OfCaller(t.Context(), who); len(sets) != 2 || sets[0].RunID != "run_2" || sets[1].RunID != "run_0" {
		t.Errorf("got %v, want the two runs of the owner, the newest first", sets)
	}
	s.EndSession(ann.Session)
	if sets := s.OfCaller(t.Context(), who); len(sets) != 0 {
		t.Errorf("after the session: got %v", sets)
	}
	for _, id := range []string{"run_../../x", "..", "", "run_1/../run_2"} {
		if _, err := s.Files(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: got %v, want %v", id, err, ErrNotFound)
		}
	}
}

func TestParseURI(t *testing.T) {
	for _, uri := range []string{"", "airlock://runs/", "airlock://runs/run_1", "airlock://runs/run_1/",
		"airlock://runs/../x", "airlock://runs/run_1/a/b",
		"airlock://runs/run_1/%zz", "http://runs/run_1/a", "airlock://runs/RUN/x"} {
		if run, name, ok := ParseURI(uri); ok {
			t.Errorf("%q: got %q and %q, want none", uri, run, name)
		}
	}
	// It parses, but no file has such a name.
	if _, name, ok := ParseURI("airlock://runs/run_1/..%2f..%2fx"); !ok || name != "../../x" {
		t.Errorf("got %q, %v", name, ok)
	}
}

// The owners of runs at another node of a cluster do not end their sessions here.
func TestOwnersOfRemovedFilesAreForgotten(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	if _, err := s.Begin("run_1", ann, DefaultLimits).Add(text("x"), ""); err != nil {
		t.Fatal(err)
	}
	if err := s.prune(); err != nil || len(s.own) != 1 {
		t.Fatalf("before: got %v, %v", s.own, err)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "run_1")); err != nil {
		t.Fatal(err)
	}
	if err := s.prune(); err != nil || len(s.own) != 0 {
		t.Errorf("after: got %v, %v", s.own, err)
	}
}
