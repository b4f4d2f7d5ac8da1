package sessionfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/store"
)

var (
	ann = caller.Owner{Principal: "ann", Kind: caller.Local, Session: "ses_1"}
	bob = caller.Owner{Principal: "bob", Kind: caller.Local, Session: "ses_1"} // another principal, the same session
)

func open(t *testing.T, dir string, limits Limits, size int64) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, limits, size, (*cluster.Node)(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// leave makes a run that leaves these files and removes those.
func leave(t *testing.T, s *Store, owner caller.Owner, files map[string]string, removed ...string) error {
	t.Helper()
	r := s.Begin(owner)
	defer r.Close()
	var pieces []Piece
	for path, content := range files {
		pieces = append(pieces, Piece{Path: path, Data: []byte(content)})
	}
	return r.Save(t.Context(), pieces, removed, true)
}

// found returns what a run of the owner finds.
func found(t *testing.T, s *Store, owner caller.Owner) map[string]string {
	t.Helper()
	r := s.Begin(owner)
	defer r.Close()
	return loaded(t, r)
}

func loaded(t *testing.T, r *Run) map[string]string {
	t.Helper()
	files := map[string]string{}
	for more := true; more; {
		var pieces []Piece
		var err error
		if pieces, more, err = r.Load(); err != nil {
			t.Fatal(err)
		}
		for _, p := range pieces {
			if p.Data == nil {
				t.Errorf("%q: got no data, want empty data", p.Path)
			}
			if p.Append {
				files[p.Path] += string(p.Data)
			} else {
				files[p.Path] = string(p.Data)
			}
		}
	}
	return files
}

var limits = Limits{Bytes: 1 << 20, Files: 100}

func TestRunsOfASessionShareFiles(t *testing.T) {
	s := open(t, t.TempDir(), limits, 1<<30)
	if got := found(t, s, ann); len(got) != 0 {
		t.Errorf("a new session: got %v, want nothing", got)
	}
	if err := leave(t, s, ann, map[string]string{"a.txt": "secret one", "dir/b.txt": "two", "empty": "",
		"line\nbreak": "3"}); err != nil {
		t.Fatal(err)
	}
	if err := leave(t, s, ann, map[string]string{"a.txt": "secret changed"}, "empty"); err != nil {
		t.Fatal(err)
	}
	if got, want := found(t, s, ann), map[string]string{"a.txt": "secret changed", "dir/b.txt": "two",
		"line\nbreak": "3"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := found(t, s, bob); len(got) != 0 {
		t.Errorf("another owner: got %v, want nothing", got)
	}
	names, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil || len(names) != 3 {
		t.Errorf("on disk: got %v and %v, want three chunks", names, err)
	}
	for _, name := range names {
		if content, err := os.ReadFile(name); err != nil || bytes.Contains(content, []byte("secret")) {
			t.Errorf("%s: %v, or not encrypted", name, err)
		}
	}
	if err := s.EndSession(t.Context(), ann.Session); err != nil {
		t.Fatal(err)
	}
	if got := found(t, s, ann); len(got) != 0 {
		t.Errorf("after the session: got %v, want nothing", got)
	}
	if names, err := filepath.Glob(filepath.Join(s.dir, "*")); err != nil || len(names) != 0 || s.bytes != 0 {
		t.Errorf("after the session: got %v, %d bytes and %v", names, s.bytes, err)
	}
}

// Files that a run has not saved completely are dropped.
func TestAnUnfinishedSaveLeavesNothing(t *testing.T) {
	s := open(t, t.TempDir(), limits, 1<<30)
	if err := leave(t, s, ann, map[string]string{"a": "1"}); err != nil {
		t.Fatal(err)
	}
	r := s.Begin(ann)
	if err := r.Save(t.Context(), []Piece{{Path: "a", Data: []byte("2")}}, nil, false); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if got := found(t, s, ann); got["a"] != "1" || s.bytes != 1 {
		t.Errorf("got %v and %d bytes, want what was there", got, s.bytes)
	}
}

// Of concurrent runs the one that ends last decides, file by file; each goes on
// with the files that it began with.
func TestTheLastWriterOfAFileWins(t *testing.T) {
	s := open(t, t.TempDir(), limits, 1<<30)
	if err := leave(t, s, ann, map[string]string{"shared": "0", "gone": "x", "kept": "k"}); err != nil {
		t.Fatal(err)
	}
	first, second := s.Begin(ann), s.Begin(ann)
	defer first.Close()
	defer second.Close()
	pieces := []Piece{{Path: "shared", Data: []byte("second")}, {Path: "of second", Data: []byte("2")}}
	if err := second.Save(t.Context(), pieces, nil, true); err != nil {
		t.Fatal(err)
	}
	if got := loaded(t, first); got["shared"] != "0" || got["gone"] != "x" {
		t.Errorf("a run that goes on: got %v, want what it began with", got)
	}
	pieces = []Piece{{Path: "shared", Data: []byte("first")}}
	if err := first.Save(t.Context(), pieces, []string{"gone"}, true); err != nil {
		t.Fatal(err)
	}
	if got, want := found(t, s, ann), map[string]string{"shared": "first", "of second": "2", "kept": "k"}; fmt.Sprint(
		got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Many at once lose nothing of each other.
	var runs sync.WaitGroup
	for i := range 20 {
		runs.Go(func() {
			if err := leave(t, s, ann, map[string]string{fmt.Sprintf("run %d", i): "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if got := found(t, s, ann); len(got) != 23 {
		t.Errorf("got %d files, want 23", len(got))
	}
}

func TestAPathIsAFileOrADirectory(t *testing.T) {
	s := open(t, t.TempDir(), limits, 1<<30)
	for _, step := range []struct{ leaves, want string }{{"a/b/c", "a/b/c"}, {"a", "a"}, {"a/b", "a/b"},
		{"a/b/d", "a/b/d"}} {
		if err := leave(t, s, ann, map[string]string{step.leaves: "x"}); err != nil {
			t.Fatal(err)
		}
		if got := found(t, s, ann); len(got) != 1 || got[step.want] != "x" {
			t.Errorf("after %q: got %v, want %q", step.leaves, got, step.want)
		}
	}
}

func TestSessionsAreBounded(t *testing.T) {
	small := Limits{Bytes: 100, Files: 3}
	long := strings.Repeat("x", 60)
	tests := map[string]struct {
		pieces []Piece
		want   string
	}{
		"too many bytes": {[]Piece{{Path: "a", Data: []byte(long)}, {Path: "b", Data: []byte(long)}},
			"120 bytes"},
		"too many bytes in pieces": {[]Piece{{Path: "a", Data: []byte(long)},
			{Path: "a", Data: []byte(long), Append: true}}, "120 bytes"},
		"too many files": {[]Piece{{Path: "a"}, {Path: "b"}, {Path: "c"}, {Path: "d"}}, "4 files"},
		"too many pieces": {[]Piece{{Path: "a"}, {Path: "a"}, {Path: "a"}, {Path: "a"}, {Path: "a"},
			{Path: "a"}, {Path: "a"}}, "pieces"},
		"a path out of it":         {[]Piece{{Path: "../a"}}, "path"},
		"a path out of it, within": {[]Piece{{Path: "a/../../b"}}, "path"},
		"an absolute path":         {[]Piece{{Path: "/etc/passwd"}}, "path"},
		"no path":                  {[]Piece{{Path: ""}}, "path"},
		"the directory itself":     {[]Piece{{Path: "."}}, "path"},
		"NUL":                      {[]Piece{{Path: "a\x00b"}}, "path"},
		"no UTF-8":                 {[]Piece{{Path: "\xff"}}, "path"},
		"a long name":              {[]Piece{{Path: strings.Repeat("n", 256)}}, "path"},
		"a long path":              {[]Piece{{Path: strings.Repeat("n/", 600) + "x"}}, "path"},
		"many levels":              {[]Piece{{Path: strings.Repeat("d/", 40) + "x"}}, "levels"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), small, 1<<30)
			r := s.Begin(ann)
			defer r.Close()
			err := r.Save(t.Context(), test.pieces, nil, true)
			var limit *LimitError
			if !errors.As(err, &limit) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a limit with %q", err, test.want)
			}
			if got := found(t, s, ann); len(got) != 0 || s.bytes != 0 {
				t.Errorf("got %v and %d bytes, want nothing", got, s.bytes)
			}
			if err := r.Save(t.Context(), nil, nil, true); !errors.Is(err, ErrTwice) {
				t.Errorf("a second time: got %v, want %v", err, ErrTwice)
			}
		})
	}
	s := open(t, t.TempDir(), limits, 100)
	if err := errors.Join(leave(t, s, ann, map[string]string{"a": long})); err != nil {
		t.Fatal(err)
	}
	if err := leave(t, s, bob, map[string]string{"b": long}); err == nil ||
		!strings.Contains(err.Error(), "session.size") {
		t.Errorf("all sessions together: got %v", err)
	}
}

// Large sets of files are handed out in several answers, each of which fits a frame.
func TestLoadInBatches(t *testing.T) {
	s := open(t, t.TempDir(), Limits{Bytes: 32 << 20, Files: 2000}, 1<<30)
	r := s.Begin(ann)
	large := bytes.Repeat([]byte("0123456789abcdef"), 3<<16) // 3 MiB
	for i := range 5 {
		if err := r.Save(t.Context(), []Piece{{Path: "large", Data: large, Append: i > 0}}, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	var small []Piece
	for i := range 1500 {
		small = append(small, Piece{Path: fmt.Sprintf("small/%d", i), Data: []byte("x")})
	}
	if err := r.Save(t.Context(), small, nil, true); err != nil {
		t.Fatal(err)
	}
	r.Close()
	again := s.Begin(ann)
	defer again.Close()
	got := loaded(t, again)
	if len(got) != 1501 || got["large"] != strings.Repeat(string(large), 5) {
		t.Errorf("got %d files, the large one with %d bytes", len(got), len(got["large"]))
	}
	if _, _, err := again.Load(); !errors.Is(err, ErrTwice) {
		t.Errorf("a second time: got %v, want %v", err, ErrTwice)
	}
}

// The files of a killed process are removed when the next one starts; those of a running
// process are kept.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	living := open(t, dir, limits, 1<<30)
	killed, err := Open(t.Context(), dir, limits, 1<<30, (*cluster.Node)(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{living, killed} {
		if err := leave(t, s, ann, map[string]string{"a": "1"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := killed.held.Release(); err != nil { // as the kernel does when a process dies
		t.Fatal(err)
	}
	if err := Sweep(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the files of a dead process: got %v", err)
	}
	if got := found(t, living, ann); got["a"] != "1" || !store.IsHeld(living.dir) {
		t.Errorf("the files of a living process: got %v", got)
	}
}

// A file that is put is taken once, in parts. It counts for its run even after that, and leaves nothing.
func TestPutAndTake(t *testing.T) {
	s := open(t, t.TempDir(), Limits{Bytes: 10 << 20, Files: 3}, 1<<30)
	if err := leave(t, s, ann, map[string]string{"old": "1", "replaced": strings.Repeat("x", 4<<20)}); err != nil {
		t.Fatal(err)
	}
	r := s.Begin(ann)
	content := bytes.Repeat([]byte("0123456789abcdef"), 5<<16) // 5 MiB
	for _, path := range []string{"replaced", "empty"} {
		data := content
		if path == "empty" {
			data = nil
		}
		if err := r.Put(path, data); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for more := true; more; {
			var part []byte
			var err error
			if part, more, err = r.Take(path); err != nil || len(part) > putPiece {
				t.Fatalf("got %d bytes, %v", len(part), err)
			}
			got = append(got, part...)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("%s: got %d bytes, want %d", path, len(got), len(data))
		}
		if _, _, err := r.Take(path); !errors.Is(err, ErrNoFile) {
			t.Errorf("%s, again: got %v, want %v", path, err, ErrNoFile)
		}
	}
	var limit *LimitError
	if err := r.Put("more", content); !errors.As(err, &limit) || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("more bytes than the session holds: got %v", err)
	}
	if err := r.Put("more", nil); !errors.As(err, &limit) || !strings.Contains(err.Error(), "files") {
		t.Errorf("more files than the session holds: got %v", err)
	}
	if err := r.Put("../out", nil); !errors.As(err, &limit) {
		t.Errorf("a path out of the session: got %v", err)
	}
	before := s.bytes
	another := s.Begin(ann)
	if err := another.Put("left", content); err != nil || s.bytes <= before {
		t.Errorf("got %v and %d bytes", err, s.bytes)
	}
	another.Close()
	r.Close()
	if err := r.Put("late", content); !errors.As(err, &limit) || s.bytes != before {
		t.Errorf("after the run: got %v and %d bytes, want %d", err, s.bytes, before)
	}
	if got := found(t, s, ann); len(got) != 2 || len(got["replaced"]) != 4<<20 {
		t.Errorf("the session has changed: got %d files", len(got))
	}
}

// elsewhere is the cluster of a session whose files another node has.
type elsewhere struct{ *cluster.Node }

func (elsewhere) Keep(context.Context, string) error { return cluster.ErrElsewhere }

// issue 28: files stay at one node.
func TestFilesOfAnotherNode(t *testing.T) {
	s := open(t, t.TempDir(), limits, 1<<20)
	s.homes = elsewhere{}
	var limit *LimitError
	if err := leave(t, s, ann, map[string]string{"a": "1"}); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
	if err := leave(t, s, ann, nil); err != nil {
		t.Errorf("a run without files: %v", err)
	}
	if got := found(t, s, ann); len(got) > 0 {
		t.Errorf("the session has %v", got)
	}
}
