package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

// A start that finds a changed log leaves it as it is: it is evidence.
func TestARefusedStartChangesNothing(t *testing.T) {
	dir := sound(t, 3, nil)
	path := filepath.Join(dir, "audit-000000000001.jsonl")
	lines := bytes.SplitAfter(readFile(t, path), []byte("\n"))
	write(t, path, string(bytes.Join(lines[:4], nil)))
	before := map[string]string{}
	for _, name := range []string{"audit-000000000001.jsonl", "head", "checkpoints", "tree"} {
		before[name] = string(readFile(t, filepath.Join(dir, name)))
	}
	l, err := audit.Open(dir, nil)
	if err == nil {
		l.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "records 5 to 7 are missing: they were signed") {
		t.Errorf("got %v, want what is missing", err)
	}
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "airlock audit verify") {
		t.Errorf("got %v, want a hint", err)
	}
	for name, text := range before {
		if string(readFile(t, filepath.Join(dir, name))) != text {
			t.Errorf("the start changed %s", name)
		}
	}
}

// legacy returns a copy of a log of the version before checkpoints had trees. Its
// process was killed in the middle of a call.
func legacy(t *testing.T) (dir, keys string) {
	t.Helper()
	root := t.TempDir()
	copyDir(t, filepath.Join("testdata", "legacy"), filepath.Join(root, "old"))
	dir, keys = filepath.Join(root, "old", "audit"), filepath.Join(root, "old", "keys")
	for _, name := range []string{"audit-hash.key", "audit-sign.key"} {
		if err := os.Chmod(filepath.Join(keys, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, keys
}

func TestALogOfAnEarlierVersionIsTakenOver(t *testing.T) {
	for _, moved := range []bool{false, true} {
		dir, keys := legacy(t)
		if moved {
			remove(t, filepath.Join(dir, "audit-000000000001.jsonl"))
		}
		verify := &audit.VerifyOptions{Keys: keys, Partial: moved}
		before, err := audit.Verify(dir, verify)
		if err != nil || !before.OK() || before.Open != 1 {
			t.Fatalf("before: got %+v, %v, want it to be sound with one open call", before, err)
		}
		for range 3 {
			l := open(t, dir, &audit.Options{Keys: keys, SegmentBytes: 2000})
			for range 4 {
				if err := l.Append(t.Context(), outcome("call_new")); err != nil {
					t.Fatal(err)
				}
			}
			l.Close()
		}
		after, err := audit.Verify(dir, verify)
		if err != nil || !after.OK() || after.Open != 0 || after.Records <= before.Records ||
			after.Signed != after.Last {
			t.Errorf("after: got %+v, %v, want it to be sound, signed and all calls closed", after, err)
		}
		upgrades := 0
		for _, r := range records(t, dir) {
			if r.Kind == audit.KindUpgrade && strings.Contains(
				r.Detail, fmt.Sprintf("to %d were written by an earlier version", before.Last)) {
				upgrades++
			}
		}
		if upgrades != 1 {
			t.Errorf("got %d records of the upgrade, want 1", upgrades)
		}
	}
}

// Signatures of an earlier version remain valid, and a running process of an earlier version
// is not overtaken.
func TestALogOfAnEarlierVersionThatWasChanged(t *testing.T) {
	newest := "audit-000000000015.jsonl"
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"cut short", func(t *testing.T, dir string) {
			lines := bytes.SplitAfter(readFile(t, filepath.Join(dir, newest)), []byte("\n"))
			write(t, filepath.Join(dir, newest), string(bytes.Join(lines[:3], nil)))
		}, "they were signed"},
		{"a record edited", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "audit-000000000001.jsonl")
			write(t, path, strings.Replace(string(readFile(t, path)), "files", "filez", 1))
		}, "damaged"},
		{"its head removed", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "head")) },
			"head is missing"},
		{"in use", func(t *testing.T, dir string) {
			lockFile(t, filepath.Join(dir, "writers", "w_8e9fa1f919f950bffb6c753f8c4d9395"))
		}, "earlier version has it open"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, keys := legacy(t)
			test.change(t, dir)
			l, err := audit.Open(dir, &audit.Options{Keys: keys})
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func lockFile(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// A machine that loses power may keep a log that is newer than its head and its
// position, by less than a batch or two, and no more.
func TestAfterALossOfPower(t *testing.T) {
	for _, test := range []struct {
		lost  int // records that head and position do not know of
		sound bool
	}{{0, true}, {1, true}, {200, true}, {256, true}, {257, false}, {1000, false}} {
		t.Run(fmt.Sprint(test.lost), func(t *testing.T) {
			root := t.TempDir()
			dir, keys := filepath.Join(root, "audit"), filepath.Join(root, "keys")
			opts := &audit.Options{Keys: keys}
			l := open(t, dir, opts)
			l.Close()
			copyDir(t, keys, filepath.Join(root, "keys-old"))
			copyDir(t, dir, filepath.Join(root, "audit-old"))
			l = open(t, dir, opts)
			for range test.lost {
				if err := l.Note(t.Context(), outcome("call_1")); err != nil {
					t.Fatal(err)
				}
			}
			l.Close()
			for _, name := range []string{"head", "checkpoints"} {
				write(t, filepath.Join(dir, name), string(readFile(t, filepath.Join(root, "audit-old", name))))
			}
			for _, path := range positions(t, filepath.Join(root, "keys-old")) {
				text := regexp.MustCompile("boot .*").ReplaceAll(
					readFile(t, path), []byte("boot 00000000-0000-0000-0000-000000000000"))
				write(t, filepath.Join(keys, filepath.Base(path)), string(text))
			}
			report, err := audit.Verify(dir, &audit.VerifyOptions{Keys: keys})
			if err != nil || report.OK() != test.sound {
				t.Errorf("verify: got %+v, %v, want sound %t", report, err, test.sound)
			}
			l, err = audit.Open(dir, opts)
			if err == nil {
				l.Close()
			}
			if (err == nil) != test.sound {
				t.Errorf("the next start: got %v, want sound %t", err, test.sound)
			}
			if told := recovered(dir) == 1; test.sound && told != (test.lost > 0) {
				t.Errorf("a record says that records were not signed: got %t", told)
			}
		})
	}
}

func positions(t *testing.T, keys string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(keys, "audit-position-*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("got %q, %v, want one position", paths, err)
	}
	return paths
}

// The tree's file is a cache: damage to it does not affect the log.
func TestTheTreesFileIsWrittenAnew(t *testing.T) {
	for _, content := range []string{"", "x", strings.Repeat("x", 10000)} {
		v := newVictim(t)
		write(t, v.path("tree"), content)
		for range 2 {
			open(t, v.dir, v.opts()).Close()
			report, err := audit.Verify(v.dir, &audit.VerifyOptions{Keys: v.keys})
			if err != nil || !report.OK() {
				t.Errorf("got %+v, %v, want it to be sound", report, err)
			}
		}
	}
}

// Code that has one call refused after the other leaves records that no caller
// waits for; they must not keep each other from being signed.
func TestRefusalsDoNotPutOffTheSignature(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	head := filepath.Join(dir, "head")
	before := string(readFile(t, head))
	for deadline := time.Now().Add(10 * time.Second); string(readFile(t, head)) == before; {
		if err := l.Note(t.Context(), outcome("call_1")); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was signed while records kept coming")
		}
	}
}

// The whole directory, signatures included, is put back to what it was yesterday.
func TestAnEarlierStateIsFoundByAKeptHead(t *testing.T) {
	dir := sound(t, 2, nil)
	yesterday := t.TempDir()
	if err := os.CopyFS(filepath.Join(yesterday, "audit"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(yesterday, "audit")
	kept := verify(t, dir).Head
	l := open(t, dir, nil)
	if err := l.Append(t.Context(), intent("call_z")); err != nil {
		t.Fatal(err)
	}
	l.Close()
	newer := verify(t, dir).Head
	tests := []struct {
		name, dir, head string
		sound           bool
	}{
		{"the log of today has yesterday's head", dir, kept, true},
		{"it has today's", dir, newer, true},
		{"the log of yesterday has its own", old, kept, true},
		{"it has not today's", old, newer, false},
		{"no log has what is no hash", dir, "x", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			report, err := audit.Verify(test.dir, &audit.VerifyOptions{Head: test.head})
			if err != nil {
				t.Fatal(err)
			}
			if report.OK() != test.sound {
				t.Errorf("got %+v, want sound %t", report.Findings, test.sound)
			}
		})
	}
}
