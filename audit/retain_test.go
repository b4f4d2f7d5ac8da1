package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

const keptDays = 90

// aged is a log of many small files, written day by day, with retention.
type aged struct {
	dir, keys string
	now       time.Time
}

func newAged(t *testing.T) *aged {
	t.Helper()
	dir := t.TempDir()
	return &aged{dir: filepath.Join(dir, "audit"), keys: filepath.Join(dir, "keys"),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (a *aged) opts() *audit.Options {
	return &audit.Options{Keys: a.keys, SegmentBytes: 8_000, Keep: keptDays * 24 * time.Hour,
		Now: func() time.Time { return a.now }}
}

// live writes some calls on each of the days, in one process.
func (a *aged) live(t *testing.T, days int) {
	t.Helper()
	if err := os.MkdirAll(a.keys, 0o700); err != nil {
		t.Fatal(err)
	}
	l := open(t, a.dir, a.opts())
	for range days {
		a.now = a.now.Add(24 * time.Hour)
		for i := range 5 {
			id := fmt.Sprintf("call_%d_%d", a.now.Unix(), i)
			if err := l.Note(context.Background(), intent(id)); err != nil {
				t.Fatal(err)
			}
			if err := l.Note(context.Background(), outcome(id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func (a *aged) verify(t *testing.T, o audit.VerifyOptions) audit.Report {
	t.Helper()
	o.Keys = a.keys
	report, err := audit.Verify(a.dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (a *aged) path(name string) string { return filepath.Join(a.dir, name) }

func TestRetentionRemovesOldRecordsWithASignedSummary(t *testing.T) {
	a := newAged(t)
	a.live(t, 60)
	if r := a.verify(t, audit.VerifyOptions{}); !r.OK() || len(r.Removed) != 0 || r.First != 1 {
		t.Fatalf("before anything is too old, got %+v", r)
	}
	head := a.verify(t, audit.VerifyOptions{}).Head
	for range 4 { // also when summaries of earlier removals are themselves removed from the log
		a.now = a.now.Add(60 * 24 * time.Hour)
		a.live(t, 30)
		r := a.verify(t, audit.VerifyOptions{})
		if !r.OK() {
			t.Fatalf("after a removal, got %+v", r.Findings)
		}
	}
	a.live(t, 1) // a start looks for old files
	r := a.verify(t, audit.VerifyOptions{})
	if len(r.Removed) < 2 || r.First != r.Removed[len(r.Removed)-1].Last+1 {
		t.Fatalf("got first record %d and removals %v", r.First, r.Removed)
	}
	counted := 0
	for _, removal := range r.Removed {
		for _, n := range removal.Kinds {
			counted += n
		}
	}
	if got := uint64(counted) + r.Records; got != r.Last {
		t.Errorf("the summaries and the log have %d records, and %d were written", got, r.Last)
	}
	for _, record := range records(t, a.dir) {
		if when, _ := time.Parse(time.RFC3339, record.Time); a.now.Sub(when) > (keptDays+keptDays/5)*24*time.Hour {
			t.Fatalf("record %d of %s is still there on %s", record.Seq, record.Time, a.now)
		}
	}
	var text bytes.Buffer
	if err := audit.WriteReport(&text, r); err != nil || !strings.Contains(text.String(), "removed: records 1 to ") {
		t.Errorf("verify prints %s (%v)", text.String(), err)
	}
	if r := a.verify(t, audit.VerifyOptions{Head: head}); r.OK() {
		t.Error("a head that was removed with its record is said to be there")
	}
	public, err := os.ReadFile(filepath.Join(a.keys, "audit-sign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := audit.Verify(a.dir, &audit.VerifyOptions{Keys: t.TempDir(), Verifier: string(public)})
	if err != nil || !elsewhere.OK() || len(elsewhere.Removed) != len(r.Removed) {
		t.Errorf("with a copy of the public key, got %+v (%v)", elsewhere.Findings, err)
	}
}

func TestARemovalThatWasNotSignedIsTampering(t *testing.T) {
	edit := func(name string, change func([]byte) []byte) func(*testing.T, *aged) {
		return func(t *testing.T, a *aged) {
			text, err := os.ReadFile(a.path(name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(a.path(name), change(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	lastNote := func(text []byte) int { return bytes.LastIndex(text, []byte("airlock audit removal\n")) }
	for name, attack := range map[string]func(*testing.T, *aged){
		"another file is removed": func(t *testing.T, a *aged) {
			paths, _ := filepath.Glob(a.path("audit-*.jsonl"))
			slices.Sort(paths)
			if err := os.Remove(paths[0]); err != nil {
				t.Fatal(err)
			}
		},
		"the summaries are removed": func(t *testing.T, a *aged) {
			if err := os.Remove(a.path("removals")); err != nil {
				t.Fatal(err)
			}
		},
		"the newest summary is removed": edit("removals", func(b []byte) []byte { return b[:lastNote(b)] }),
		"the oldest summary is removed": edit("removals", func(b []byte) []byte { return b[lastNote(b):] }),
		"a number is changed": edit("removals", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"intent":`), []byte(`"intent":1`), 1)
		}),
		"the newest summary covers more": edit("removals", func(b []byte) []byte {
			i := lastNote(b)
			return append(b[:i:i], bytes.Replace(b[i:], []byte(`"last":`), []byte(`"last":1`), 1)...)
		}),
		"a summary is there twice": edit("removals", func(b []byte) []byte {
			return append(b, b[lastNote(b):]...)
		}),
		"summaries of another log": func(t *testing.T, a *aged) {
			other := newAged(t)
			other.live(t, 60)
			other.now = other.now.Add(60 * 24 * time.Hour)
			other.live(t, 30)
			text, err := os.ReadFile(other.path("removals"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(a.path("removals"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAged(t)
			a.live(t, 60)
			for range 2 {
				a.now = a.now.Add(60 * 24 * time.Hour)
				a.live(t, 30)
			}
			if r := a.verify(t, audit.VerifyOptions{}); !r.OK() || len(r.Removed) < 2 {
				t.Fatalf("before the attack, got %d removals and %+v", len(r.Removed), r.Findings)
			}
			attack(t, a)
			if r := a.verify(t, audit.VerifyOptions{}); r.OK() {
				t.Errorf("verify calls the log sound: %+v", r)
			}
		})
	}
}

func TestARemovalThatWasInterruptedIsFinished(t *testing.T) {
	a := newAged(t)
	a.live(t, 60)
	before := t.TempDir()
	copyDir(t, a.dir, before)
	a.now = a.now.Add(120 * 24 * time.Hour)
	a.live(t, 1)
	removed := a.verify(t, audit.VerifyOptions{})
	// As if Airlock had been killed before it removed the last files, or all.
	old, _ := filepath.Glob(filepath.Join(before, "audit-*.jsonl"))
	slices.Sort(old)
	restored := 0
	for _, path := range slices.Backward(old) {
		if _, err := os.Stat(a.path(filepath.Base(path))); err == nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(a.path(filepath.Base(path)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		restored++
		if r := a.verify(t, audit.VerifyOptions{}); !r.OK() {
			t.Fatalf("with %d files that are still there, got %+v", restored, r.Findings)
		}
	}
	if restored == 0 {
		t.Fatal("no file was removed")
	}
	a.now = a.now.Add(24 * time.Hour)
	a.live(t, 1)
	if r := a.verify(t, audit.VerifyOptions{}); !r.OK() || r.First < removed.First {
		t.Errorf("after the next start, got first record %d and %+v", r.First, r.Findings)
	}
}

func TestRetentionKeepsFilesThatAnIdleProcessHasOpen(t *testing.T) {
	a := newAged(t)
	a.live(t, 10)
	idle := open(t, a.dir, a.opts())
	a.live(t, 60)
	a.now = a.now.Add(120 * 24 * time.Hour)
	a.live(t, 5)
	if err := idle.Append(context.Background(), intent("call_late")); err != nil {
		t.Fatalf("a process that was idle cannot write: %v", err)
	}
	if err := idle.Close(); err != nil {
		t.Fatal(err)
	}
	a.live(t, 1)
	if r := a.verify(t, audit.VerifyOptions{}); !r.OK() || len(r.Removed) == 0 {
		t.Errorf("after the idle process ended, got %d removals and %+v", len(r.Removed), r.Findings)
	}
}
