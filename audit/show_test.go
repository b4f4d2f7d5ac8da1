package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/golden"
)

// run writes a small run with everything that can happen in one.
func run(t *testing.T, dir string) {
	t.Helper()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	l := open(t, dir, &audit.Options{ClearArguments: true, Now: func() time.Time {
		now = now.Add(12500 * time.Microsecond)
		return now
	}})
	who := audit.Identity{RunID: "run_7f00", SessionID: "ses_1", Principal: "ann",
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", CodeHash: "sha256:c0de"}
	read := audit.Act{CallID: "call_1", ParentID: "run_7f00", ServerID: "files", ToolName: "read_file",
		ArgumentsHash: "hmac-sha256:1", Arguments: json.RawMessage(`{"path":"/srv/\u202ea"}`)}
	erase := audit.Act{CallID: "call_2", ParentID: "run_7f00", ServerID: "files", ToolName: "delete\x1b[2J_file"}
	lookup := audit.Act{CallID: "call_3", ParentID: "run_7f00", ServerID: "files", ToolName: "nope"}
	often := audit.Act{CallID: "call_4", ParentID: "run_7f00", ServerID: "files", ToolName: "read_file"}
	barred := audit.Act{CallID: "call_5", ParentID: "run_7f00", ServerID: "files", ToolName: "move_file",
		Arguments: json.RawMessage(`{"to":"/etc"}`)}
	pending := audit.Ruling{Decision: "allow", Policies: []string{"default.destructive"}, Risk: "destructive",
		Approval: "PENDING"}
	denied := audit.Ruling{Decision: "allow", Policies: []string{"default.destructive"}, Risk: "destructive",
		Approval: "DENIED", Approver: "ann, command line"}
	allowed := audit.Ruling{Decision: "allow", Policies: []string{"default.read"}, Risk: "read",
		Approval: "NOT_REQUIRED"}
	asked := audit.Ruling{Decision: "allow", Policies: []string{"default.destructive"}, Risk: "destructive",
		Approval: "APPROVED", Approver: "ann, command line"}
	for _, r := range []audit.Record{
		{Kind: audit.KindRunStart, Identity: who, RunFacts: audit.RunFacts{Language: "python",
			Image: "python@sha256:1mage", Snapshot: "sha256:5nap", Limits: map[string]string{
				"limits.calls": "1000", "limits.bytesIn": "1073741824", "limits.rate": "1000/5s",
				"limits.callTimeout": "1m0s",
				"sandbox.memory":     "536870912", "servers.files.tools.delete\x1b[2J_file.rate": "1/1h0m0s",
			}}},
		{Kind: audit.KindIntent, Identity: who, Act: read, Ruling: allowed},
		{Kind: audit.KindApproval, Identity: who, Act: erase, Ruling: pending, Detail: "apr_1 asked"},
		{Kind: audit.KindOutcome, Identity: who, Act: read, Ruling: allowed,
			Effect: audit.Effect{Outcome: audit.OutcomeOK, ResultSize: 123456, DurationMS: 7,
				Redactions: map[string]int{"held-credential": 2}}},
		{Kind: audit.KindIntent, Identity: who, Act: erase, Ruling: asked},
		{Kind: audit.KindOutcome, Identity: who, Act: erase, Ruling: asked,
			Effect: audit.Effect{Outcome: audit.OutcomeError, ErrorType: "ToolError", DurationMS: 20, ResultSize: 80}},
		{Kind: audit.KindOutcome, Identity: who, Act: lookup,
			Effect: audit.Effect{Outcome: audit.OutcomeRefused, ErrorType: "UnknownTool"}, Detail: "no such tool"},
		{Kind: audit.KindOutcome, Identity: who, Act: often,
			Effect: audit.Effect{Outcome: audit.OutcomeRefused, ErrorType: "RateLimit", Limit: "servers.files.rate"},
			Detail: "too often"},
		{Kind: audit.KindOutcome, Identity: who, Act: barred, Ruling: denied,
			Effect: audit.Effect{Outcome: audit.OutcomeRefused, ErrorType: "ApprovalDenied"}},
		{Kind: audit.KindViolation, Identity: who, Detail: "a frame was malformed"},
		{Kind: audit.KindRunEnd, Identity: who, Effect: audit.Effect{Outcome: audit.OutcomeError, ErrorType: "Timeout",
			ErrorSource: "code", Limit: "sandbox.timeout", DurationMS: 90, ResultSize: 300},
			RunFacts: audit.RunFacts{OutputDigest: "sha256:0ut", ApprovalState: "APPROVED", Calls: 3}},
	} {
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
}

func TestShowAndTailForPeople(t *testing.T) {
	dir := t.TempDir()
	run(t, dir)
	tree, err := audit.ShowFrom(dir, 1, "run_7")
	if err != nil {
		t.Fatal(err)
	}
	var shown, lines bytes.Buffer
	if err := audit.WriteTree(&shown, tree); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, shown.Bytes(), filepath.Join("testdata", "show.txt"))
	for _, r := range records(t, dir) {
		if err := audit.WriteLine(&lines, r); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, lines.Bytes(), filepath.Join("testdata", "tail.txt"))
	if text := shown.String() + lines.String(); regexp.MustCompile("[\x00-\x09\x0b-\x1f\u202e]").MatchString(text) {
		t.Errorf("control characters reach the terminal: %q", text)
	}
}

// The text of a call that waits was printed twice, as an approval and as a reason (issue 27).
func TestAWaitingCallIsShownOnce(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	who := audit.Identity{RunID: "run_1", Principal: "ann"}
	write := audit.Act{CallID: "call_1", ServerID: "files", ToolName: "write"}
	for _, r := range []audit.Record{
		{Kind: audit.KindRunStart, Identity: who},
		{Kind: audit.KindApproval, Identity: who, Act: write, Detail: "asked ann",
			Ruling: audit.Ruling{Decision: "ask", Approval: "PENDING"}},
	} {
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	tree, err := audit.ShowFrom(dir, 1, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	if err := audit.WriteTree(&shown, tree); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(shown.String(), "asked ann"); got != 1 {
		t.Errorf("the question is shown %d times, want once: %s", got, shown.String())
	}
}

func TestShowSaysWhatItCannotFind(t *testing.T) {
	dir := t.TempDir()
	run(t, dir)
	for _, id := range []string{"run_8", "", `run_7f00"`} {
		if _, err := audit.ShowFrom(dir, 1, id); !errors.Is(err, audit.ErrNoRun) {
			t.Errorf("%q: got %v, want ErrNoRun", id, err)
		}
	}
	l := open(t, dir, nil)
	if err := l.Append(t.Context(), audit.Record{Kind: audit.KindRunStart,
		Identity: audit.Identity{RunID: "run_70"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.ShowFrom(dir, 1, "run_7"); err == nil || !strings.Contains(err.Error(), "2 runs") {
		t.Errorf("an ID of two runs: got %v, want it to ask for more", err)
	}
}

// The calls of a run are found by their IDs: with a search through all of them, this test would take minutes.
func TestRunsCanHaveManyCalls(t *testing.T) {
	const calls = 200_000
	var records []audit.Record
	for _, kind := range []audit.Kind{audit.KindIntent, audit.KindOutcome} {
		for n := range calls {
			records = append(records, audit.Record{Seq: uint64(len(records) + 1), Kind: kind,
				Identity: audit.Identity{RunID: "run_1"}, Act: audit.Act{CallID: fmt.Sprintf("call_%06d", n)}})
		}
	}
	tree := audit.TreesOf(records)["run_1"]
	if len(tree.Calls) != calls {
		t.Fatalf("got %d calls, want %d", len(tree.Calls), calls)
	}
	for n, c := range tree.Calls {
		if c.ID != fmt.Sprintf("call_%06d", n) || c.Intent == nil || c.Outcome == nil ||
			c.Intent.Seq+calls != c.Outcome.Seq {
			t.Fatalf("call %d: got %+v", n, c)
		}
	}
}
