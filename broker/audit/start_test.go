package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/audit"
)

// Somebody without the key changes a log while no Airlock runs. The next start
// must not sign the change.
func TestAStartDoesNotCoverUpAChange(t *testing.T) {
	log := func(dir string) string { return filepath.Join(dir, "audit-000000000001.jsonl") }
	cut := func(t *testing.T, dir string, records int) {
		lines := bytes.SplitAfter(readFile(t, log(dir)), []byte("\n"))
		write(t, log(dir), string(bytes.Join(lines[:len(lines)-1-records], nil)))
	}
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		refuse string // empty: it starts, and a record says
		remark string
	}{
		{"cut short by a record", func(t *testing.T, dir string) { cut(t, dir, 1) }, "was signed and is not there", ""},
		{"cut short by many", func(t *testing.T, dir string) { cut(t, dir, 4) }, "was signed and is not there", ""},
		{"cut in the middle of the last record", func(t *testing.T, dir string) {
			whole := readFile(t, log(dir))
			write(t, log(dir), string(whole[:len(whole)-9]))
		}, "was signed and is not there", ""},
		{"emptied", func(t *testing.T, dir string) { write(t, log(dir), "") }, "was signed and is not there", ""},
		{"removed", func(t *testing.T, dir string) { remove(t, log(dir)) }, "was signed and is not there", ""},
		{"cut short, and its head removed", func(t *testing.T, dir string) {
			cut(t, dir, 2)
			remove(t, filepath.Join(dir, "head"))
		}, "", "the signed head is"},
		{"a forged record added", func(t *testing.T, dir string) {
			lines := bytes.SplitAfter(readFile(t, log(dir)), []byte("\n"))
			last := lines[len(lines)-2]
			forged := bytes.Replace(last, []byte(`"seq":7`), []byte(`"seq":8`), 1)
			at, was := bytes.Index(forged, []byte(`"prev":"`)), bytes.Index(last, []byte(`"hash":"`))
			copy(forged[at+8:at+8+71], last[was+8:])
			write(t, log(dir), string(append(readFile(t, log(dir)), rehash(t, forged)...)))
		}, "", "records 8 to 8 are not signed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := sound(t, 3, nil)
			test.change(t, dir)
			before := readLog(t, log(dir))
			l, err := audit.Open(dir, nil)
			if err == nil {
				l.Close()
			}
			if test.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), test.refuse) {
					t.Errorf("got %v, want %q", err, test.refuse)
				}
				if !bytes.Equal(readLog(t, log(dir)), before) {
					t.Error("a start that was refused changed the log")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, r := range records(t, dir) {
				if r.Kind == audit.KindRecovered {
					said += r.Detail
				}
			}
			if !strings.Contains(said, test.remark) {
				t.Errorf("got the remark %q, want %q", said, test.remark)
			}
			open(t, dir, nil).Close()
			if again := strings.Count(string(readFile(t, log(dir))), `"kind":"recovered"`); again != 1 {
				t.Errorf("got %d remarks after one more start, want 1", again)
			}
		})
	}
}

// Code that has one call refused after the other leaves records that nobody
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

// readLog returns a file's bytes, none when it is not there.
func readLog(t *testing.T, path string) []byte {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return readFile(t, path)
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
