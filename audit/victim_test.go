package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

// victim is a log of several files and starts, with its keys elsewhere: an
// attacker can write dir and nothing else.
type victim struct {
	dir, keys string
	earlier   []string // copies of dir as it was after each start and end
	keysKept  string   // a copy of keys
}

func (v victim) opts() *audit.Options {
	return &audit.Options{Keys: v.keys, SegmentBytes: 2000}
}

func (v victim) path(name string) string { return filepath.Join(v.dir, name) }

func newVictim(t *testing.T) victim {
	t.Helper()
	root := t.TempDir()
	v := victim{dir: filepath.Join(root, "audit"), keys: filepath.Join(root, "keys")}
	for start := range 3 {
		l := open(t, v.dir, v.opts())
		for call := range 3 {
			id := fmt.Sprintf("call_%d_%d", start, call)
			if err := errors.Join(l.Append(t.Context(), intent(id)), l.Note(t.Context(), outcome(id))); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		v.earlier = append(v.earlier, filepath.Join(root, fmt.Sprintf("earlier-%d", start)))
		copyDir(t, v.dir, v.earlier[start])
	}
	v.keysKept = filepath.Join(root, "keys-kept")
	copyDir(t, v.keys, v.keysKept)
	return v
}

// restore makes the victim as it was before any attack.
func (v victim) restore(t *testing.T) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(v.dir), os.RemoveAll(v.keys)); err != nil {
		t.Fatal(err)
	}
	copyDir(t, v.earlier[len(v.earlier)-1], v.dir)
	copyDir(t, v.keysKept, v.keys)
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	keys, err := filepath.Glob(filepath.Join(to, "*.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range keys {
		if err := os.Chmod(path, 0o600); err != nil { // the copy has another mode
			t.Fatal(err)
		}
	}
}

func (v victim) files(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(v.path("audit-*.jsonl"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("got %d files, %v, want at least 3", len(paths), err)
	}
	return paths
}

// lines returns all records and which file each is in.
func (v victim) lines(t *testing.T) (lines [][]byte, file []string) {
	t.Helper()
	for _, path := range v.files(t) {
		for line := range bytes.Lines(readFile(t, path)) {
			lines, file = append(lines, line), append(file, path)
		}
	}
	return lines, file
}

// rewrite writes records back into their files.
func rewrite(t *testing.T, lines [][]byte, file []string) {
	t.Helper()
	content := map[string][]byte{}
	for i, line := range lines {
		content[file[i]] = append(content[file[i]], line...)
	}
	for _, path := range file {
		write(t, path, string(content[path]))
	}
}

// rechain gives all records from one on the numbers, hashes and predecessors
// that fit, as an attacker without the keys can.
func rechain(t *testing.T, lines [][]byte, from int) [][]byte {
	t.Helper()
	prev := ""
	for i := range lines {
		if i >= from && i > 0 {
			var r map[string]any
			if err := json.Unmarshal(lines[i], &r); err != nil {
				t.Fatal(err)
			}
			r["prev"], r["seq"] = prev, i+1
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			lines[i] = rehash(t, text)
		} else if i >= from {
			lines[i] = rehash(t, lines[i])
		}
		var r struct{ Hash string }
		if err := json.Unmarshal(lines[i], &r); err != nil {
			t.Fatal(err)
		}
		prev = r.Hash
	}
	return lines
}

// forged is a record that never was.
func forged(t *testing.T, like []byte) []byte {
	t.Helper()
	return rehash(t, bytes.Replace(bytes.ReplaceAll(like, []byte(`"files"`), []byte(`"bank"`)),
		[]byte(`"outcome":"ok"`), []byte(`"outcome":"error"`), 1))
}

func (v victim) checkpoints(t *testing.T) [][]byte {
	t.Helper()
	notes := bytes.SplitAfter(readFile(t, v.path("checkpoints")), []byte("\n\n"))
	// Each is a text, an empty line, a signature and an empty line.
	var kept [][]byte
	for i := 0; i+1 < len(notes); i += 2 {
		kept = append(kept, slices.Concat(notes[i], notes[i+1]))
	}
	if len(kept) < 5 {
		t.Fatalf("got %d checkpoints, want at least 5", len(kept))
	}
	return kept
}

func (v victim) keep(t *testing.T, notes [][]byte) {
	t.Helper()
	write(t, v.path("checkpoints"), string(bytes.Join(notes, nil)))
}

// asHead makes a kept checkpoint the head.
func (v victim) asHead(t *testing.T, kept []byte) {
	t.Helper()
	write(t, v.path("head"), string(bytes.TrimSuffix(kept, []byte("\n"))))
}

// sizeOf is how many records a checkpoint covers.
func sizeOf(t *testing.T, kept []byte) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(strings.Split(string(kept), "\n")[1], &n); err != nil {
		t.Fatal(err)
	}
	return n
}
