package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

// watched is a log with a witness.
type watched struct {
	dir, keys string
	witness   audit.WitnessOptions
	now       func() time.Time
}

func (w watched) opts() *audit.Options {
	return &audit.Options{Keys: w.keys, SegmentBytes: 4000, Witnesses: w.witnesses(), Now: w.now}
}

func (w watched) witnesses() []audit.WitnessOptions {
	if w.witness.Address == "" {
		return nil
	}
	return []audit.WitnessOptions{w.witness}
}

func (w watched) verify(t *testing.T) audit.Report {
	t.Helper()
	report, err := audit.Verify(w.dir, &audit.VerifyOptions{Keys: w.keys, Witness: w.witness.Address,
		WitnessKey: w.witness.Key})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// work opens the log, makes calls and closes it.
func (w watched) work(t *testing.T, calls int) {
	t.Helper()
	l, err := audit.Open(w.dir, w.opts())
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		id := fmt.Sprintf("call_%d", i)
		if err := errors.Join(l.Append(t.Context(), intent(id)), l.Note(t.Context(), outcome(id))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func newWatched(t *testing.T, address, key string, delay time.Duration) watched {
	t.Helper()
	root := t.TempDir()
	return watched{filepath.Join(root, "audit"), filepath.Join(root, "keys"),
		audit.WitnessOptions{Address: address, Key: key, Delay: delay}, nil}
}

// introduce configures the witness for a log with one record.
func (w watched) introduce(t *testing.T, server *witnessServer) {
	t.Helper()
	open(t, w.dir, &audit.Options{Keys: w.keys}).Close()
	report, err := audit.Verify(w.dir, &audit.VerifyOptions{Keys: w.keys})
	if err != nil || !report.OK() {
		t.Fatalf("got %+v, %v", report, err)
	}
	server.set(func() { server.logs[report.Origin] = report.Key })
}

// An attacker with the keys rewrites the log with Airlock's own means: the witness
// has what it was.
func TestAWitnessAgainstWhoHasTheKeys(t *testing.T) {
	server := newWitnessServer(t)
	for _, kind := range []string{"file", "http"} {
		forge := func(t *testing.T, w watched) string {
			t.Helper()
			// A log of another history, signed with the same keys, under the same name.
			origin := strings.SplitN(string(readFile(t, filepath.Join(w.dir, "head"))), "\n", 2)[0]
			position := positions(t, w.keys)[0]
			remove(t, position)
			if err := os.RemoveAll(w.dir); err != nil {
				t.Fatal(err)
			}
			return origin
		}
		tests := []struct {
			name   string
			attack func(t *testing.T, w watched)
			sound  bool
		}{
			{"nothing happens", func(*testing.T, watched) {}, true},
			{"the log goes on", func(t *testing.T, w watched) { w.work(t, 3) }, true},
			{"a new log is begun in its place", func(t *testing.T, w watched) {
				forge(t, w)
				w.witness = audit.WitnessOptions{}
				open(t, w.dir, &audit.Options{Keys: w.keys}).Close()
			}, false},
			{"a new log of the same name is begun in its place", func(t *testing.T, w watched) {
				text := readFile(t, positions(t, w.keys)[0])
				origin := forge(t, w)
				rename(t, w, origin, text, 40)
			}, false},
			{"a shorter log of the same name is begun in its place", func(t *testing.T, w watched) {
				text := readFile(t, positions(t, w.keys)[0])
				origin := forge(t, w)
				rename(t, w, origin, text, 1)
			}, false},
			{"a new log with a new key is begun in its place", func(t *testing.T, w watched) {
				forge(t, w)
				newKeys(t, w)
				open(t, w.dir, &audit.Options{Keys: w.keys}).Close()
			}, false},
			{"a new log with a new key is begun in its place, and the witness told", func(t *testing.T, w watched) {
				forge(t, w)
				newKeys(t, w)
				if kind == "http" {
					w.introduce(t, server) // by an operator who knows no better
					server.set(func() { server.logs = map[string]string{} })
				}
				w.work(t, 9)
			}, false},
			{"a new log with a new key takes its name", func(t *testing.T, w watched) {
				text := readFile(t, positions(t, w.keys)[0])
				origin := forge(t, w)
				newKeys(t, w)
				rename(t, w, origin, text, 40)
				if kind == "file" {
					w.work(t, 1)
				}
			}, false},
			{"log, keys and all are put back", func(t *testing.T, w watched) {
				if err := errors.Join(os.RemoveAll(w.dir), os.RemoveAll(w.keys)); err != nil {
					t.Fatal(err)
				}
				copyDir(t, w.dir+".old", w.dir)
				copyDir(t, w.keys+".old", w.keys)
			}, false},
		}
		for _, test := range tests {
			t.Run(kind+": "+test.name, func(t *testing.T) {
				w := newWatched(t, filepath.Join(t.TempDir(), "witness"), "", time.Minute)
				if kind == "http" {
					w.witness = audit.WitnessOptions{Address: server.URL, Key: server.key, Delay: time.Minute}
					w.introduce(t, server)
				}
				w.work(t, 4)
				copyDir(t, w.dir, w.dir+".old")
				copyDir(t, w.keys, w.keys+".old")
				w.work(t, 4)
				if report := w.verify(t); !report.OK() || report.Witness.Newest != report.Last {
					t.Fatalf("before: got %+v with %+v, want it to be sound and witnessed to its end", report,
						report.Witness)
				}
				test.attack(t, w)
				alone, err := audit.Verify(w.dir, &audit.VerifyOptions{Keys: w.keys})
				if err != nil || !alone.OK() {
					t.Fatalf("without the witness: got %+v, %v; the attack is clumsy", alone, err)
				}
				report, err := audit.Verify(w.dir,
					&audit.VerifyOptions{Keys: w.keys, Witness: w.witness.Address, WitnessKey: w.witness.Key})
				if sound := err == nil && report.OK(); sound != test.sound {
					t.Errorf("got %+v, %v, want sound %t", report.Findings, err, test.sound)
				}
			})
		}
	}
}

// newKeys takes the keys of a log away, so that the next start makes new ones.
func newKeys(t *testing.T, w watched) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(w.keys), os.RemoveAll(w.dir)); err != nil {
		t.Fatal(err)
	}
}

// rename starts a log with the origin of another one in its position.
func rename(t *testing.T, w watched, origin string, _ []byte, calls int) {
	t.Helper()
	l := open(t, w.dir, &audit.Options{Keys: w.keys})
	l.Close()
	mine := strings.SplitN(string(readFile(t, filepath.Join(w.dir, "head"))), "\n", 2)[0]
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	path := positions(t, w.keys)[0]
	fresh := bytes.Replace(readFile(t, path), []byte(mine), []byte(origin), 1)
	lines := strings.SplitAfter(string(fresh), "\n")
	zero := fmt.Sprintf("%020d %71s\n", 0, "")
	for i, line := range lines {
		for _, word := range []string{"durable ", "base "} {
			if strings.HasPrefix(line, word) {
				lines[i] = word + zero
			}
		}
		if strings.HasPrefix(line, "pending ") {
			lines[i] = "pending 000000\n"
		}
	}
	write(t, path, strings.Join(lines, ""))
	l = open(t, w.dir, &audit.Options{Keys: w.keys})
	for range calls {
		if err := l.Append(t.Context(), outcome("call_forged")); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	if got := strings.SplitN(string(readFile(t, filepath.Join(w.dir, "head"))), "\n", 2)[0]; got != origin {
		t.Fatalf("got the origin %q, want %q", got, origin)
	}
}

func TestAWitnessThatIsAway(t *testing.T) {
	server := newWitnessServer(t)
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	w := newWatched(t, server.URL, server.key, time.Minute)
	w.now = clock
	w.introduce(t, server)
	server.set(func() { server.away = true })
	l := open(t, w.dir, w.opts())
	if err := l.Append(t.Context(), intent("call_1")); err != nil {
		t.Fatalf("within the delay: %v", err)
	}
	pass(2 * time.Minute)
	err := l.Append(t.Context(), intent("call_2"))
	if err == nil || !strings.Contains(err.Error(), "witness has not confirmed") {
		t.Errorf("after the delay: got %v, want a refusal", err)
	}
	if err := l.Note(t.Context(), outcome("call_1")); err != nil {
		t.Errorf("an outcome after the delay: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing without the witness: %v", err)
	}
	// A restart does not make it forget.
	l = open(t, w.dir, w.opts())
	if err := l.Append(t.Context(), intent("call_3")); err == nil {
		t.Error("after a restart: a call is recorded")
	}
	l.Close()
	server.set(func() { server.away = false })
	w.work(t, 2)
	if report := w.verify(t); !report.OK() || report.Witness.Newest != report.Last {
		t.Errorf("when it is back: got %+v, want all of it witnessed", report)
	}
}

// A checkpoint that was signed while the clock was ahead waits no longer than others.
func TestAWitnessThatIsAwayWhileTheClockIsSetBack(t *testing.T) {
	server := newWitnessServer(t)
	ahead := &atomic.Int64{}
	base := time.Now()
	w := newWatched(t, server.URL, server.key, time.Minute)
	w.now = func() time.Time { return base.Add(time.Duration(ahead.Load())) }
	w.introduce(t, server)
	w.work(t, 1)
	server.set(func() { server.away = true })
	ahead.Store(int64(time.Hour))
	l := open(t, w.dir, w.opts())
	if err := errors.Join(l.Append(t.Context(), outcome("call_1")), l.Close()); err != nil {
		t.Fatal(err)
	}
	ahead.Store(0)
	l = open(t, w.dir, w.opts())
	if err := l.Append(t.Context(), intent("call_2")); err != nil {
		t.Fatalf("within the delay: %v", err)
	}
	ahead.Store(int64(2 * time.Minute))
	if err := l.Append(t.Context(), intent("call_3")); err == nil {
		t.Error("after the delay: a call is recorded")
	}
}

func TestEachCallWaitsForTheWitness(t *testing.T) {
	server := newWitnessServer(t)
	w := newWatched(t, server.URL, server.key, 0)
	w.introduce(t, server)
	l := open(t, w.dir, w.opts())
	for i := range 5 {
		if err := l.Append(t.Context(), intent(fmt.Sprint("call_", i))); err != nil {
			t.Fatal(err)
		}
		var seen int64
		server.set(func() {
			for _, size := range server.size {
				seen = size
			}
		})
		if all := records(t, w.dir); seen < int64(len(all)) {
			t.Errorf("the witness has %d records, and %d are announced", seen, len(all))
		}
	}
	server.set(func() { server.away = true })
	if err := l.Append(t.Context(), intent("call_x")); err == nil {
		t.Error("without the witness a call is made")
	}
	server.set(func() { server.away = false })
	if err := l.Append(t.Context(), intent("call_y")); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// A log that was put back, keys and all, does not start: the witness has seen more.
func TestAWitnessThatKnowsMore(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		server := newWitnessServer(t)
		w := newWatched(t, server.URL, server.key, time.Minute)
		w.introduce(t, server)
		knowsMore(t, w)
	})
	t.Run("file", func(t *testing.T) {
		knowsMore(t, newWatched(t, filepath.Join(t.TempDir(), "witness"), "", time.Minute))
	})
}

func knowsMore(t *testing.T, w watched) {
	t.Helper()
	w.work(t, 4)
	copyDir(t, w.dir, w.dir+".old")
	copyDir(t, w.keys, w.keys+".old")
	w.work(t, 4)
	if err := errors.Join(os.RemoveAll(w.dir), os.RemoveAll(w.keys), os.Rename(w.dir+".old", w.dir),
		os.Rename(w.keys+".old", w.keys)); err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(w.dir, w.opts())
	if err == nil {
		l.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "another history") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestAWitnessThatLiesOrDoesNotKnowTheLog(t *testing.T) {
	server := newWitnessServer(t)
	other := newWitnessServer(t)
	for name, witness := range map[string]audit.WitnessOptions{
		"it does not know the log":    {Address: server.URL, Key: server.key},
		"it signs with another key":   {Address: server.URL, Key: other.key},
		"there is nobody":             {Address: "http://127.0.0.1:1/", Key: server.key},
		"the file is in no directory": {Address: "/nonexistent/witness"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, "", "", 0)
			if strings.Contains(name, "another key") {
				w.introduce(t, server)
			}
			w.witness = witness
			l := open(t, w.dir, w.opts())
			if err := l.Append(t.Context(), intent("call_1")); err == nil || !strings.Contains(err.Error(), "witness") {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

// Missing checkpoints in a witness's file are detected, and two processes submit each
// checkpoint once.
func TestTheWitnesssFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "witness")
	w := newWatched(t, "file://"+path, "", time.Minute)
	a, b := open(t, w.dir, w.opts()), open(t, w.dir, w.opts())
	for range 30 {
		for _, l := range []*audit.Log{a, b} {
			if err := l.Append(t.Context(), outcome("call_1")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	w.witness.Address = path
	report := w.verify(t)
	kept := bytes.Count(readFile(t, filepath.Join(w.dir, "checkpoints")), []byte("\nkept "))
	if !report.OK() || report.Witness.Checkpoints != kept || report.Witness.Newest != report.Last {
		t.Errorf("got %+v with %+v, want all %d checkpoints once", report, report.Witness, kept)
	}
	whole := readFile(t, path)
	for name, content := range map[string]string{
		"emptied": "", "cut short": string(whole[:len(whole)/2]),
		"changed": strings.ReplaceAll(string(whole), "kept ", "kepd "),
	} {
		write(t, path, content)
		if report := w.verify(t); report.OK() {
			t.Errorf("%s: it is not found", name)
		}
	}
	write(t, path, "rubbish\n\n"+string(whole)+"airlock-audit/half\n12")
	if report := w.verify(t); !report.OK() {
		t.Errorf("among other things: got %+v, want it to be sound", report.Findings)
	}
}

// Checkpoints that the witness has are not held in memory. They are submitted again if the progress was put back.
func TestSubmittedCheckpointsAreForgotten(t *testing.T) {
	address := filepath.Join(t.TempDir(), "witness")
	w := newWatched(t, address, "", 0)
	l, err := audit.Open(w.dir, w.opts())
	if err != nil {
		t.Fatal(err)
	}
	add := func(id string) {
		t.Helper()
		if err := l.Append(t.Context(), intent(id)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		add(fmt.Sprintf("call_%d", i))
	}
	progress, err := filepath.Glob(filepath.Join(w.keys, "audit-witnessed-*"))
	if err != nil || len(progress) == 0 {
		t.Fatal(progress, err)
	}
	before := bytes.Count(readFile(t, address), []byte("\n\n"))
	for _, path := range progress {
		remove(t, path)
	}
	add("call_5")
	if after := bytes.Count(readFile(t, address), []byte("\n\n")); after < 2*before {
		t.Errorf("the witness had %d lines of checkpoints, and has %d", before, after)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := l.CheckpointsInMemory(); n != 1 {
		t.Errorf("%d checkpoints are in memory", n)
	}
	if report := w.verify(t); !report.OK() {
		t.Errorf("got %+v", report)
	}
}
