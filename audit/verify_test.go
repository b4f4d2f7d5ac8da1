package audit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// sound writes a closed log of n calls over several files and returns its directory.
func sound(t *testing.T, n int, opts *audit.Options) string {
	t.Helper()
	dir := t.TempDir()
	l := open(t, dir, opts)
	for i := range n {
		id := "call_" + string(rune('a'+i))
		if err := l.Append(t.Context(), intent(id)); err != nil {
			t.Fatal(err)
		}
		if err := l.Note(t.Context(), outcome(id)); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	verified(t, dir)
	return dir
}

func verify(t *testing.T, dir string) audit.Report {
	t.Helper()
	report, err := audit.Verify(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every bit of every file of a log is turned once; each must be found. A longer
// log, with records of calls, has one bit of each byte turned.
func TestEverySingleBitIsFound(t *testing.T) {
	tests := []struct {
		name  string
		calls int
		bits  func(at int) []int
	}{
		{"all bits of a short log", 0, func(int) []int { return []int{0, 1, 2, 3, 4, 5, 6, 7} }},
		{"one bit of each byte of a longer one", 2, func(at int) []int { return []int{at * 5 % 8} }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := sound(t, test.calls, nil)
			for _, name := range []string{"audit-000000000001.jsonl", "head", "checkpoints"} {
				turnBits(t, dir, name, test.bits)
			}
			verified(t, dir)
		})
	}
}

func turnBits(t *testing.T, dir, name string, bits func(at int) []int) {
	t.Helper()
	path := filepath.Join(dir, name)
	whole := readFile(t, path)
	for at := range whole {
		for _, bit := range bits(at) {
			changed := slices.Clone(whole)
			changed[at] ^= 1 << bit
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if verify(t, dir).OK() {
				t.Errorf("%s: byte %d, bit %d (%q became %q) is not found", name, at, bit, whole[at], changed[at])
			}
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEverySingleRecordIsFound(t *testing.T) {
	dir := sound(t, 3, nil)
	path := filepath.Join(dir, "audit-000000000001.jsonl")
	whole := readFile(t, path)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	tests := []struct {
		name   string
		change func(i int) [][]byte
	}{
		{"removed", func(i int) [][]byte { return slices.Delete(slices.Clone(lines), i, i+1) }},
		{"written twice", func(i int) [][]byte { return slices.Insert(slices.Clone(lines), i, lines[i]) }},
		{"swapped with the next", func(i int) [][]byte {
			swapped := slices.Clone(lines)
			j := (i + 1) % len(lines)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			return swapped
		}},
		{"the log ends before it", func(i int) [][]byte { return lines[:i] }},
		{"replaced by one with a right hash", func(i int) [][]byte {
			forged := slices.Clone(lines)
			forged[i] = rehash(t, bytes.Replace(lines[i], []byte(`"kind":"`), []byte(`"kind":"x`), 1))
			return forged
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i := range lines {
				changed := bytes.Join(test.change(i), nil)
				if err := os.WriteFile(path, changed, 0o600); err != nil {
					t.Fatal(err)
				}
				report := verify(t, dir)
				if report.OK() {
					t.Errorf("record %d: it is not found", i+1)
					continue
				}
				if seq := report.Findings[0].Seq; seq < uint64(i) || seq > uint64(i)+2 {
					t.Errorf("record %d: got record %d: %s", i+1, seq, report.Findings[0].Text)
				}
			}
		})
	}
}

// rehash gives a changed line the hash that fits it.
func rehash(t *testing.T, line []byte) []byte {
	t.Helper()
	var record map[string]any
	if err := json.Unmarshal(line, &record); err != nil {
		t.Fatal(err)
	}
	delete(record, "hash")
	bare, err := canon.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	record["hash"] = canon.Digest(bare)
	text, err := canon.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// An attacker without the key writes the whole chain anew.
func TestForgedChainIsFound(t *testing.T) {
	dir := sound(t, 3, nil)
	path := filepath.Join(dir, "audit-000000000001.jsonl")
	prev := ""
	var forged []byte
	for line := range bytes.Lines(readFile(t, path)) {
		line = bytes.Replace(line, []byte("files"), []byte("fakes"), 1)
		if prev != "" {
			var r struct{ Prev string }
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			line = bytes.Replace(line, []byte(r.Prev), []byte(prev), 1)
		}
		line = rehash(t, line)
		var r struct{ Hash string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		prev = r.Hash
		forged = append(forged, line...)
	}
	if err := os.WriteFile(path, forged, 0o600); err != nil {
		t.Fatal(err)
	}
	report := verify(t, dir)
	if report.OK() || !strings.Contains(report.Findings[0].Text, "signed") {
		t.Errorf("got %+v, want the signature not to fit", report.Findings)
	}
}

func TestFilesOfALog(t *testing.T) {
	small := &audit.Options{SegmentBytes: 1000}
	tests := []struct {
		name   string
		change func(t *testing.T, dir string, files []string)
		opts   *audit.VerifyOptions
		want   string // empty: it is sound
	}{
		{"untouched", func(*testing.T, string, []string) {}, nil, ""},
		{"the oldest file is moved away", func(t *testing.T, _ string, files []string) { remove(t, files[0]) }, nil,
			"older files were moved away"},
		{"the same, as the operator says", func(t *testing.T, _ string, files []string) { remove(t, files[0]) },
			&audit.VerifyOptions{Partial: true}, ""},
		{"a file in the middle is removed", func(t *testing.T, _ string, files []string) { remove(t, files[1]) }, nil,
			"records are missing"},
		{"the newest file is removed", func(t *testing.T, _ string, files []string) { remove(t, files[len(files)-1]) },
			nil, "they were signed"},
		{"the head is removed", func(t *testing.T, dir string, _ []string) { remove(t, filepath.Join(dir, "head")) },
			nil, "head is missing"},
		{"the checkpoints are removed", func(t *testing.T, dir string,
			_ []string) {
			remove(t, filepath.Join(dir, "checkpoints"))
		}, nil, "checkpoints are missing"},
		{"the public key is removed", func(t *testing.T, dir string,
			_ []string) {
			remove(t, filepath.Join(dir, "keys", "audit-sign.pub"))
		}, nil, "no signature can be checked"},
		{"the key is another's", func(t *testing.T, dir string, _ []string) {
			other := filepath.Join(sound(t, 1, nil), "keys", "audit-sign.pub")
			write(t, filepath.Join(dir, "keys", "audit-sign.pub"), string(readFile(t, other)))
		}, nil, "damaged or forged"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := sound(t, 4, small)
			files, err := filepath.Glob(filepath.Join(dir, "audit-*"))
			if err != nil || len(files) < 3 {
				t.Fatalf("got %d files, %v, want at least 3", len(files), err)
			}
			test.change(t, dir, files)
			report, err := audit.Verify(dir, test.opts)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range report.Findings {
				found = append(found, f.Text)
			}
			if said := strings.Join(found, "\n"); (test.want == "") != report.OK() ||
				!strings.Contains(said, test.want) {
				t.Errorf("got %q, want %q", said, test.want)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func FuzzVerifyNeverPanics(f *testing.F) {
	f.Add([]byte(`{"seq":1}`+"\n"), []byte("airlock audit log\n"))
	f.Fuzz(func(t *testing.T, log, head []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "audit-000000000001.jsonl"), string(log))
		write(t, filepath.Join(dir, "head"), string(head))
		report, err := audit.Verify(dir, nil)
		if err == nil && report.OK() {
			t.Error("a log that Airlock did not write is sound")
		}
	})
}
