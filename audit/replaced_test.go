package audit_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

// A log that is moved, replaced or changed under a living Airlock stops calls at
// the next record, and writes no records to a file that no reader opens.
func TestALogThatIsReplacedWhileItIsOpen(t *testing.T) {
	const newest = "audit-000000000001.jsonl"
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	byCopy := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			text := readFile(t, path)
			remove(t, path)
			write(t, path, string(text))
		}
	}
	byLink := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			must(t, os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		}
	}
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
	}{
		{"the directory is renamed", func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".old")) }},
		{"the directory is removed", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }},
		{"the directory is renamed, and a copy put in its place", func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".old"))
			copyDir(t, dir+".old", dir)
		}},
		{"the directory is renamed, and an empty one put in its place", func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700))
		}},
		{"the directory is replaced by a link to a copy", func(t *testing.T, dir string) {
			copyDir(t, dir, dir+".copy")
			must(t, os.Rename(dir, dir+".old"), os.Symlink(dir+".copy", dir))
		}},
		{"the file is renamed", func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, newest), filepath.Join(dir, "x")))
		}},
		{"the file is removed", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, newest)) }},
		{"the file is replaced by a copy", byCopy(newest)},
		{"the file is replaced by a link", byLink(newest)},
		{"the file is hard-linked elsewhere and removed", func(t *testing.T, dir string) {
			must(t, os.Link(filepath.Join(dir, newest), filepath.Join(dir, "x")), os.Remove(filepath.Join(dir, newest)))
		}},
		{"the file is emptied", func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, newest), 0)) }},
		{"the file loses its last record", func(t *testing.T, dir string) {
			text := bytes.TrimSuffix(readFile(t, filepath.Join(dir, newest)), []byte("\n"))
			must(t, os.Truncate(filepath.Join(dir, newest), int64(bytes.LastIndexByte(text, '\n')+1)))
		}},
		{"a forged record is added", func(t *testing.T, dir string) {
			path := filepath.Join(dir, newest)
			lines := bytes.SplitAfter(readFile(t, path), []byte("\n"))
			lines = lines[:len(lines)-1]
			from := len(lines)
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.Write(rechain(t, append(lines, forged(t, lines[1])), from)[from])
			must(t, err, f.Close())
		}},
		{"the head is replaced", byCopy("head")},
		{"the head is removed", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "head")) }},
		{"the checkpoints are replaced", byCopy("checkpoints")},
		{"the checkpoints are removed", func(t *testing.T,
			dir string) {
			remove(t, filepath.Join(dir, "checkpoints"))
		}},
		{"the lock is replaced", byCopy("lock")},
		{"the lock is removed", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "lock")) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "audit")
			l := open(t, dir, &audit.Options{Keys: filepath.Join(root, "keys")})
			if err := errors.Join(l.Append(t.Context(), intent("call_1")),
				l.Note(t.Context(), outcome("call_1"))); err != nil {
				t.Fatal(err)
			}
			test.change(t, dir)
			for range 2 { // the first error does not make it well
				if err := l.Append(t.Context(), intent("call_2")); err == nil {
					t.Fatal("a call is recorded as if nothing had happened")
				}
			}
		})
	}
}

// Two processes that write one log do not take each other for attackers.
func TestALogThatAnotherAirlockRotates(t *testing.T) {
	dir := t.TempDir()
	small := &audit.Options{SegmentBytes: 1500}
	a, b := open(t, dir, small), open(t, dir, small)
	for range 20 {
		for _, l := range []*audit.Log{a, b} {
			if err := errors.Join(l.Append(t.Context(), intent("call_1")),
				l.Note(t.Context(), outcome("call_1"))); err != nil {
				t.Fatal(err)
			}
		}
	}
	verified(t, dir)
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	verified(t, dir)
	open(t, dir, small).Close()
	verified(t, dir)
}
