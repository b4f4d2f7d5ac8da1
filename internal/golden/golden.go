// Package golden compares what a test produced with what is written in a file.
// Run a test with -update to rewrite the files, then read the diff.
package golden

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files with what the test produced")

// Check fails the test unless got equals the contents of the file. A missing
// file is a failure, never a pass.
func Check(t testing.TB, got []byte, file string) {
	t.Helper()
	if *update {
		write(t, got, file)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("golden file: %v (run with -update to write it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

// CheckDir fails the test unless got, a map from slash-separated relative path
// to contents, equals the directory's files: none missing, none left over.
func CheckDir(t testing.TB, got map[string][]byte, dir string) {
	t.Helper()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for path, data := range got {
		Check(t, data, filepath.Join(dir, filepath.FromSlash(path)))
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if _, ok := got[filepath.ToSlash(rel)]; !ok {
			t.Errorf("%s: wanted, but not produced", path)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("golden directory: %v", err)
	}
}

func write(t testing.TB, got []byte, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, got, 0o644); err != nil {
		t.Fatal(err)
	}
}
