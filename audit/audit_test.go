package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
)

// childRole makes the test binary act as another Airlock process.
const childRole = "AIRLOCK_AUDIT_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(childRole) {
	case "":
		os.Exit(m.Run())
	case "writer":
		os.Exit(childWriter(os.Getenv("AIRLOCK_AUDIT_TEST_DIR")))
	case "full-disk":
		os.Exit(childFullDisk(os.Getenv("AIRLOCK_AUDIT_TEST_DIR")))
	case "full-at-close":
		os.Exit(childFullAtClose(os.Getenv("AIRLOCK_AUDIT_TEST_DIR")))
	default:
		os.Exit(9)
	}
}

func child(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, "AIRLOCK_AUDIT_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// childWriter calls without end: it prints a call's ID once its intent is durable.
func childWriter(dir string) int {
	l, err := audit.Open(dir, &audit.Options{SegmentBytes: 20_000})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for g := range 4 {
		wg.Go(func() {
			for i := range 400 {
				id := fmt.Sprintf("call_%d_%d_%d", os.Getpid(), g, i)
				err := l.Append(context.Background(), intent(id))
				if err != nil {
					return
				}
				mu.Lock()
				fmt.Println(id)
				mu.Unlock()
				if i%2 == 0 {
					err = l.Note(context.Background(), outcome(id))
				} else {
					err = l.NoteSoon(outcome(id))
				}
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func intent(id string) audit.Record {
	return audit.Record{Kind: audit.KindIntent, Identity: audit.Identity{RunID: "run_1"},
		Act: audit.Act{CallID: id, ServerID: "files", ToolName: "read"}}
}

func outcome(id string) audit.Record {
	r := intent(id)
	r.Kind = audit.KindOutcome
	r.Outcome = audit.OutcomeOK
	return r
}

func open(t testing.TB, dir string, opts *audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func records(t testing.TB, dir string) []audit.Record {
	t.Helper()
	var all []audit.Record
	err := audit.Tail(context.Background(), dir, 1<<20, false, func(r audit.Record) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func verified(t testing.TB, dir string) audit.Report {
	t.Helper()
	report, err := audit.Verify(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Fatalf("the log does not verify: %+v", report.Findings)
	}
	return report
}

func TestAppendAndReopen(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	for i := range 3 {
		id := fmt.Sprintf("call_%d", i)
		if err := l.Append(t.Context(), intent(id)); err != nil {
			t.Fatal(err)
		}
		if err := l.Note(t.Context(), outcome(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), intent("late")); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("append after close: got %v, want ErrClosed", err)
	}
	open(t, dir, nil)
	report := verified(t, dir)
	if report.Records != 7 || report.Open != 0 {
		t.Errorf("got %d records, %d open, want 7 (with log_start) and 0", report.Records, report.Open)
	}
}

func TestRefusesToStart(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(t *testing.T, dir string)
		want    string
	}{
		{"where a file stands in place of the directory", func(t *testing.T, dir string) { write(t, dir, "") },
			"not a directory"},
		{"with a key that others may read", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "keys", "audit-hash.key"), strings.Repeat("k", 32))
			if err := os.Chmod(filepath.Join(dir, "keys", "audit-hash.key"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "may be read by others"},
		{"with a key that is too short", func(t *testing.T,
			dir string) {
			write(t, filepath.Join(dir, "keys", "audit-hash.key"), "k")
		}, "not 32"},
		{"with a file it did not name", func(t *testing.T,
			dir string) {
			write(t, filepath.Join(dir, "audit-1.jsonl"), "")
		}, "did not name"},
		{"with a damaged last record", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "audit-000000000001.jsonl"), `{"seq":1}`+"\n")
		}, "damaged"},
		{"with an empty file that is not the first",
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, "audit-000000000009.jsonl"), "") }, "missing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			test.prepare(t, dir)
			l, err := audit.Open(dir, nil)
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A torn end is what a crash in the middle of a write leaves.
func TestTornEnds(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	if err := l.Append(t.Context(), intent("call_1")); err != nil {
		t.Fatal(err)
	}
	l.Close()
	path := filepath.Join(dir, "audit-000000000001.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := begin; cut < len(whole); cut += 7 {
		fresh := t.TempDir()
		write(t, filepath.Join(fresh, filepath.Base(path)), string(whole[:cut]))
		l := open(t, fresh, nil)
		if err := l.Append(t.Context(), intent("call_2")); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		l.Close()
		verified(t, fresh)
		kinds := []audit.Kind{}
		for _, r := range records(t, fresh) {
			kinds = append(kinds, r.Kind)
		}
		if cut > begin && !slices.Contains(kinds, audit.KindRecovered) {
			t.Errorf("cut at %d: got %v, want a record of the cut", cut, kinds)
		}
	}
}

// The same in a file that had just been begun.
func TestTornFirstRecordOfALaterFile(t *testing.T) {
	for _, torn := range []string{"", `{"arg`} {
		dir := t.TempDir()
		small := &audit.Options{SegmentBytes: 300}
		l := open(t, dir, small)
		if err := l.Append(t.Context(), intent("call_1")); err != nil {
			t.Fatal(err)
		}
		l.Close()
		files, err := filepath.Glob(filepath.Join(dir, "audit-*"))
		if err != nil || len(files) < 2 {
			t.Fatalf("got %d files, %v, want at least 2", len(files), err)
		}
		newest := files[len(files)-1]
		write(t, newest, torn)
		remove(t, filepath.Join(dir, "head")) // nothing of what is lost was signed
		remove(t, filepath.Join(dir, "checkpoints"))
		remove(t, positions(t, filepath.Join(dir, "keys"))[0])
		l = open(t, dir, small)
		if err := l.Append(t.Context(), intent("call_2")); err != nil {
			t.Fatalf("torn to %q: %v", torn, err)
		}
		l.Close()
		verified(t, dir)
	}
}

func TestUnfinishedWorkIsClosed(t *testing.T) {
	t.Run("at close, by the process itself", func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, dir, nil)
		if err := l.Append(t.Context(), audit.Record{Kind: audit.KindRunStart,
			Identity: audit.Identity{RunID: "run_1"}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), intent("call_1")); err != nil {
			t.Fatal(err)
		}
		l.Close()
		all := records(t, dir)
		call, run := all[len(all)-2], all[len(all)-1]
		if call.Kind != audit.KindOutcome || call.Outcome != audit.OutcomeUnknown || call.CallID != "call_1" {
			t.Errorf("got %+v, want an unknown outcome of call_1", call)
		}
		if run.Kind != audit.KindRunEnd || run.RunID != "run_1" {
			t.Errorf("got %+v, want the end of run_1", run)
		}
	})
	t.Run("not while its process lives", func(t *testing.T) {
		dir := t.TempDir()
		if err := open(t, dir, nil).Append(t.Context(), intent("call_1")); err != nil {
			t.Fatal(err)
		}
		open(t, dir, nil)
		if report := verified(t, dir); report.Open != 1 {
			t.Errorf("got %d open, want 1", report.Open)
		}
	})
}

func TestKilledAtAnyPoint(t *testing.T) {
	dir := t.TempDir()
	announced := map[string]bool{}
	for range 6 {
		cmd := child(t, "writer", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, stopAfter := bufio.NewScanner(out), 1+rand.IntN(300)
		for lines.Scan() {
			announced[lines.Text()] = true
			if stopAfter--; stopAfter == 0 {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		verified(t, dir) // before any start has repaired it
	}
	open(t, dir, &audit.Options{SegmentBytes: 20_000}).Close()
	if report := verified(t, dir); report.Open != 0 {
		t.Errorf("got %d open intents after the next start, want none", report.Open)
	}
	seen := map[string]bool{}
	for _, r := range records(t, dir) {
		if r.Kind == audit.KindIntent {
			seen[r.CallID] = true
		}
	}
	for id := range announced {
		if !seen[id] && strings.Count(id, "_") == 3 {
			t.Errorf("call %q was announced, but its intent is not in the log", id)
		}
	}
	if len(announced) < 6 {
		t.Errorf("only %d calls were made: the test proves nothing", len(announced))
	}
}

func TestManyProcessesWriteOneChain(t *testing.T) {
	dir := t.TempDir()
	var children []*exec.Cmd
	for range 3 {
		cmd := child(t, "writer", dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	report := verified(t, dir)
	if calls := uint64(3 * 4 * 400 * 2); report.Records < calls || report.Open != 0 {
		t.Errorf("got %d records, %d open, want at least %d and 0", report.Records, report.Open, calls)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "audit-*")); len(files) < 10 {
		t.Errorf("got %d files, want the log to have been rotated", len(files))
	}
}

// childFullDisk writes to a disk that is full, and then has free space again.
func childFullDisk(dir string) int {
	signal.Ignore(syscall.SIGXFSZ)
	l, err := audit.Open(dir, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	fmt.Println("first", l.Append(ctx, intent("call_1")) == nil && l.Append(ctx, intent("call_2")) == nil)
	limit(512)
	fmt.Println("outcome while full", l.Note(ctx, outcome("call_1")) == nil)
	fmt.Println("outcome behind it", l.NoteSoon(outcome("call_2")) == nil)
	fmt.Println("intent while full", l.Append(ctx, intent("call_3")) == nil)
	limit(1 << 40)
	fmt.Println("intent with room", l.Append(ctx, intent("call_4")) == nil)
	fmt.Println("close", l.Close() == nil)
	return 0
}

// limit is the size at which a file of this process is full.
func limit(bytes uint64) {
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: 1 << 40}); err != nil {
		panic(err)
	}
}

// childFullAtClose closes a log when there is room for half a checkpoint.
func childFullAtClose(dir string) int {
	signal.Ignore(syscall.SIGXFSZ)
	l, err := audit.Open(dir, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for range 1000 { // a checkpoint is due
		if err := l.Note(context.Background(), outcome("call_1")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	limit(400)
	fmt.Println("close", l.Close() == nil)
	return 0
}

func TestFullDiskAtClose(t *testing.T) {
	dir := t.TempDir()
	out, err := child(t, "full-at-close", dir).Output()
	if err != nil || string(out) != "close false\n" {
		t.Fatalf("got %q, %v, want an error at close", out, err)
	}
	verified(t, dir)
	open(t, dir, nil).Close()
	verified(t, dir)
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	out, err := child(t, "full-disk", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "first true\noutcome while full false\noutcome behind it false\nintent while full false\n" +
		"intent with room true\nclose true\n"
	if string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
	verified(t, dir)
	var seen []string
	for _, r := range records(t, dir)[1:] {
		seen = append(seen, string(r.Kind)+" "+r.CallID)
	}
	if want := []string{"intent call_1", "intent call_2", "outcome call_1", "outcome call_2", "intent call_4",
		"outcome call_4"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q: no outcome is lost, and no refused intent appears", seen, want)
	}
}

func TestArguments(t *testing.T) {
	value := map[string]any{"path": "/srv/secret", "n": json.Number("7"), "deep": []any{true, nil},
		"a strange name": "x"}
	dir := t.TempDir()
	hashed := string(open(t, dir, nil).Arguments(value))
	bare := regexp.MustCompile(`hmac-sha256:[0-9a-f]{64}`).ReplaceAllString(hashed, "")
	if want := `{"deep":["",""],"":"","n":"","path":""}`; bare != want {
		t.Errorf("without its hashes got %s, want %s", bare, want)
	}
	if !strings.Contains(hashed, `"path":"hmac-sha256:`) {
		t.Errorf("got %s, want the plain name with a hash", hashed)
	}
	if clear := string(open(t, dir, &audit.Options{ClearArguments: true}).Arguments(value)); !strings.Contains(
		clear, "/srv/secret") {
		t.Errorf("got %s, want the values as the operator asked", clear)
	}
	many := map[string]any{}
	for i := range 500 {
		many["k"+strconv.Itoa(i)] = true
	}
	if got := open(t, dir, nil).Arguments(many); got != nil {
		t.Errorf("500 values: got %d bytes, want none", len(got))
	}
}

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, &audit.Options{SegmentBytes: 2000})
	ctx, cancel := context.WithCancel(t.Context())
	seen, done := make(chan string), make(chan error, 1)
	go func() {
		// Wherever the log ends when the reader first looks, it sees each record once.
		done <- audit.Tail(ctx, dir, 100, true, func(r audit.Record) error {
			if r.Kind == audit.KindIntent {
				seen <- r.CallID
			}
			return nil
		})
	}()
	for i := range 20 {
		id := fmt.Sprintf("call_%d", i)
		if err := l.Append(t.Context(), intent(id)); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != id {
			t.Fatalf("got %q, want %q", got, id)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after the context ended: got %v, want nil", err)
	}
}
