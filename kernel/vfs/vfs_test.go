package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/kernel/vfs"
)

func open(t *testing.T, limits vfs.Limits) (*vfs.Store, *database.DB, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := databasetest.Open(t.Context(), path, vfs.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return vfs.New(db, agekey.Of(identity), limits, nil), db, path
}

var wide = vfs.Limits{Files: 100, FileBytes: 1 << 20, Bytes: 4 << 20}

// K-041, K-044
func TestFilesBelongToOneAgent(t *testing.T) {
	s, _, _ := open(t, wide)
	ctx := t.Context()
	for agent, text := range map[string]string{"a": "of a", "b": "of b"} {
		if err := s.Write(ctx, agent, "notes/today.txt", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Write(ctx, "a", "notes/today.txt", []byte("of a, again")); err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]string{"a": "of a, again", "b": "of b"} {
		if got, err := s.Read(ctx, agent, "notes/today.txt"); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", agent, got, err)
		}
	}
	if err := s.Remove(ctx, "a", "notes/today.txt"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(ctx, "a", "notes/today.txt"); !errors.Is(err, vfs.ErrNotFound) {
		t.Error(err)
	}
	if err := s.Remove(ctx, "a", "notes/today.txt"); !errors.Is(err, vfs.ErrNotFound) {
		t.Error(err)
	}
	if got, err := s.Read(ctx, "b", "notes/today.txt"); err != nil || string(got) != "of b" {
		t.Errorf("another agent's file went as well: %q, %v", got, err)
	}
}

func TestLists(t *testing.T) {
	s, _, _ := open(t, wide)
	for _, path := range []string{"b", "a/x", "a/y/z", "ab", "a0", "é"} {
		if err := s.Write(t.Context(), "a", path, []byte(path)); err != nil {
			t.Fatal(path, err)
		}
	}
	for _, c := range []struct {
		directory, after string
		n                int
		want             string
	}{
		{"", "", 10, "a/x a/y/z a0 ab b é"}, {"a", "", 10, "a/x a/y/z"}, {"a/", "a/x", 10, "a/y/z"},
		{"", "a0", 2, "ab b"}, {"none", "", 10, ""},
	} {
		files, err := s.List(t.Context(), "a", c.directory, c.after, c.n)
		var got []string
		for _, f := range files {
			got = append(got, f.Path)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// K-044
func TestPathsThatLeadElsewhereAreRefused(t *testing.T) {
	s, _, _ := open(t, wide)
	if err := s.Write(t.Context(), "a", "file", nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"", ".", "..", "../x", "a/../b", "a/..", "/etc/passwd", "a//b", "a/", "a\x00b", "a\\..\\b", "a\nb", "~/../x/..",
		"\uFF0E\uFF0E/x", "\u2024\u2024/x", "a\uFF0Fb", "a\u2215b", "a\u2044b", "\u202Etxt", "a\u200Bb", "a\xFFb", " a",
		"a /b", "...", "ﬁle", "e\u0301",
		"%2e%2e/x", "a:b", "C:/x", "a*", "file/inside", strings.Repeat("x", 513), strings.Repeat("a/", 16) + "a", "😀",
	} {
		var wrong *vfs.PathError
		if err := s.Write(t.Context(), "a", path, []byte("x")); !errors.As(err, &wrong) {
			t.Errorf("%q was written: %v", path, err)
		}
	}
	for _, path := range []string{"a b.txt", "..a", "a..", ".hidden", "größe", "日本/語", "v1.2~(3)",
		strings.Repeat("a/", 15) + "a"} {
		if err := s.Write(t.Context(), "a", path, []byte("x")); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	var wrong *vfs.PathError
	if err := s.Write(t.Context(), "a", "日本", nil); !errors.As(err, &wrong) {
		t.Errorf("a directory was overwritten: %v", err)
	}
}

func TestLimitsHoldUnderConcurrency(t *testing.T) {
	s, _, _ := open(t, vfs.Limits{Files: 5, FileBytes: 10, Bytes: 30})
	var limit *vfs.LimitError
	if err := s.Write(t.Context(), "a", "big", make([]byte, 11)); !errors.As(err, &limit) {
		t.Error(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := s.Write(t.Context(), "a", fmt.Sprint(i), make([]byte, 10)); err != nil &&
				!errors.As(err, new(*vfs.LimitError)) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if files, size, err := s.Usage(t.Context(), "a"); err != nil || files != 3 || size != 30 {
		t.Errorf("%d files, %d bytes, %v; want 3 of 10", files, size, err)
	}
	for i := range 4 {
		_ = s.Write(t.Context(), "b", fmt.Sprint(i), nil) // space for five
	}
	if err := errors.Join(s.Write(t.Context(), "b", "4", nil),
		s.Write(t.Context(), "b", "4", []byte("again"))); err != nil {
		t.Error(err)
	}
	if err := s.Write(t.Context(), "b", "5", nil); !errors.As(err, &limit) {
		t.Error(err)
	}
}

func TestContentIsEncryptedAndBoundToItsPlace(t *testing.T) {
	s, db, path := open(t, wide)
	word := []byte("a word that only the agent knows")
	if err := errors.Join(s.Write(t.Context(), "a", "x", word),
		s.Write(t.Context(), "b", "x", []byte("other"))); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || databasetest.IsSQLite() && len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err != nil || bytes.Contains(raw, word) {
			t.Errorf("%s holds the content: %v", file, err)
		}
	}
	err = db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(
			t.Context(), `UPDATE vfs SET sealed = (SELECT sealed FROM vfs WHERE agent = 'a') WHERE agent = 'b'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(t.Context(), "b", "x"); !errors.Is(err, vfs.ErrDamaged) {
		t.Errorf("another agent's content is read: %q, %v", got, err)
	}
}
