package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/verify"
	"github.com/airlock-mcp/airlock/verify/verifytest"
)

// kept is an audit log in memory; broken, one that cannot be written.
type kept struct {
	mu      sync.Mutex
	records []Record
	broken  bool
}

func (k *kept) Record(_ context.Context, r Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken {
		return errors.New("the disk is full")
	}
	k.records = append(k.records, r)
	return nil
}

// answers is an analyser that always returns one answer.
type answers func(ctx context.Context, r verify.Request) (verify.Verdict, error)

func (a answers) Verify(ctx context.Context, r verify.Request) (verify.Verdict, error) {
	return a(ctx, r)
}

// admit returns admission with an audit log in a temporary directory.
func admit(t testing.TB) *admission.Service {
	t.Helper()
	log, err := audit.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	a, err := admission.New(admission.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newGateway(t *testing.T, v Verifier, trusted bool) (*Gateway, *kept) {
	t.Helper()
	log := &kept{}
	g, err := New(Options{Admission: admit(t), Verifier: v, Recorder: log, Trusted: trusted})
	if err != nil {
		t.Fatal(err)
	}
	return g, log
}

var ann = caller.Caller{Principal: "ann", Kind: caller.Local, Session: "ses_1"}

func decide(t *testing.T, g *Gateway, tool, arguments string) Decision {
	t.Helper()
	d, err := g.Decide(t.Context(), Call{Caller: ann, Tool: tool, Arguments: []byte(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The table of texts: what Python's RiskBasedExecutionGateway decides about each of
// these, TestBothGatewaysAgree asks it.
var table = []struct {
	name, tool, arguments, code, message string
}{
	{"a removed tool", "verify_math", `{}`, UnknownTool, "Unknown MCP tool 'verify_math' is blocked by default."},
	{"a removed tool with arguments", "verify_sql", `{"query": "SELECT 1", "allowed_tables": ["a"]}`, UnknownTool,
		"Unknown MCP tool 'verify_sql' is blocked by default."},
	{"no name", "", `{}`, UnknownTool, "Unknown MCP tool '' is blocked by default."},
	{"another spelling", "Execute_Python_Code", `{"code": "1"}`, UnknownTool,
		"Unknown MCP tool 'Execute_Python_Code' is blocked by default."},
	{"no code", ExecuteCode, `{}`, NoCode, "Missing required non-empty 'code' argument."},
	{"empty code", ExecuteCode, `{"code": ""}`, NoCode, "Missing required non-empty 'code' argument."},
	{"white space", ExecuteCode, `{"code": " \n\t"}`, NoCode, "Missing required non-empty 'code' argument."},
	{"a number for code", ExecuteCode, `{"code": 7}`, NoCode, "Missing required non-empty 'code' argument."},
	{"no code comes before background", ExecuteCode, `{"background": "yes"}`, NoCode,
		"Missing required non-empty 'code' argument."},
	{"background is a text", ExecuteCode, `{"code": "1", "background": "true"}`, BadBackground,
		"'background' must be a boolean when provided."},
	{"background is a number", ExecuteCode, `{"code": "1", "background": 1}`, BadBackground,
		"'background' must be a boolean when provided."},
	{"background is null", ExecuteCode, `{"code": "1", "background": null}`, BadBackground,
		"'background' must be a boolean when provided."},
	{"background comes before safety", ExecuteCode, `{"code": "eval('1')", "background": 0}`, BadBackground,
		"'background' must be a boolean when provided."},
	{"eval", ExecuteCode, `{"code": "eval(input())"}`, UnsafeCode,
		"QWED blocked python execution: Dangerous pattern: eval"},
	{"several findings", ExecuteCode, `{"code": "import os as x\nx.system('ls')\nexec('1')"}`, UnsafeCode, ""},
	{"what does not parse", ExecuteCode, `{"code": "eval("}`, UnsafeCode, ""},
	{"what does not parse and is harmless", ExecuteCode, `{"code": "print(1"}`, "", "Python execution was verified."},
	{"safe code", ExecuteCode, `{"code": "print(1)"}`, "", "Python execution was verified."},
	{"safe code in the background", ExecuteCode, `{"code": "print(1)", "background": true, "other": 1}`, "",
		"Python execution was verified."},
	{"danger in a text is none", ExecuteCode, `{"code": "print('os.system(1)')  # eval(x)"}`, "",
		"Python execution was verified."},
	{"no job", JobStatus, `{}`, NoJobID, "Missing required non-empty 'job_id' argument."},
	{"an empty job", JobStatus, `{"job_id": " "}`, NoJobID, "Missing required non-empty 'job_id' argument."},
	{"a number for a job", JobStatus, `{"job_id": 7}`, NoJobID, "Missing required non-empty 'job_id' argument."},
	{"no UUID", JobStatus, `{"job_id": "not-a-uuid"}`, BadJobID,
		"Invalid job_id format: a canonical UUID is required."},
	{"braces", JobStatus, `{"job_id": "{3f8a1b2c-4d5e-6f7a-8b9c-0d1e2f3a4b5c}"}`, BadJobID,
		"Invalid job_id format: a canonical UUID is required."},
	{"a URN", JobStatus, `{"job_id": "urn:uuid:3f8a1b2c-4d5e-6f7a-8b9c-0d1e2f3a4b5c"}`, BadJobID,
		"Invalid job_id format: a canonical UUID is required."},
	{"no hyphens", JobStatus, `{"job_id": "3f8a1b2c4d5e6f7a8b9c0d1e2f3a4b5c"}`, BadJobID,
		"Invalid job_id format: a canonical UUID is required."},
	{"two lines", JobStatus, `{"job_id": "3f8a1b2c-4d5e-6f7a-8b9c-0d1e2f3a4b5c\nx"}`, BadJobID,
		"Invalid job_id format: a canonical UUID is required."},
	{"upper case and white space", JobStatus, `{"job_id": " 3F8A1B2C-4D5E-6F7A-8B9C-0D1E2F3A4B5C\n"}`, "",
		"Status lookup was verified."},
}

//
// T25, T30.
func TestDecisions(t *testing.T) {
	g, log := newGateway(t, answers(verifytest.Start(t).Verify), true)
	ids := map[string]bool{}
	for _, test := range table {
		d := decide(t, g, test.tool, test.arguments)
		status, risk := Blocked, "high"
		if test.code == "" {
			status = Allowed
		}
		if test.tool == JobStatus {
			risk = "low"
		}
		if d.ErrorCode != test.code || d.Status != status || d.RiskLevel != risk || d.Verified != (test.code == "") ||
			test.message != "" && d.Message != test.message {
			t.Errorf("%s: got %+v, want the code %q and %q", test.name, d, test.code, test.message)
		}
		ids[d.VerificationID] = true
		if last := log.records[len(log.records)-1]; last.Decision.VerificationID != d.VerificationID ||
			last.Caller.Session != ann.Session || last.Tool != test.tool {
			t.Errorf("%s: got the record %+v, want that of the decision", test.name, last)
		}
	}
	if len(ids) != len(table) || len(log.records) != len(table) {
		t.Errorf("got %d IDs and %d records for %d decisions", len(ids), len(log.records), len(table))
	}
}

// One gateway here, one in sdk/python: the same decisions in the same words.
func TestBothGatewaysAgree(t *testing.T) {
	g, _ := newGateway(t, answers(verifytest.Start(t).Verify), true)
	var calls []any
	for _, test := range table {
		calls = append(calls, []any{test.tool, json.RawMessage(test.arguments)})
	}
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	command := verifytest.Python(t, "-c", `
import json, sys
from qwed_mcp.security import RiskBasedExecutionGateway
gateway = RiskBasedExecutionGateway()
decisions = [gateway.evaluate_and_route(tool, arguments) for tool, arguments in json.load(sys.stdin)]
print(json.dumps([[d, gateway.format_blocked(d)] for d in decisions]))`)
	command.Env = append(command.Env, Switch+"=true")
	command.Stdin = strings.NewReader(string(input))
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs [][2]json.RawMessage
	if err := json.Unmarshal(output, &theirs); err != nil || len(theirs) != len(table) {
		t.Fatalf("%v: %s", err, output)
	}
	for i, test := range table {
		ours := decide(t, g, test.tool, test.arguments)
		var decision Decision
		var text string
		if err := errors.Join(json.Unmarshal(theirs[i][0], &decision),
			json.Unmarshal(theirs[i][1], &text)); err != nil {
			t.Fatal(err)
		}
		ours.VerificationID = decision.VerificationID
		a, err := json.Marshal(ours)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(decision)
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) || ours.Text() != text {
			t.Errorf("%s: got %s\n%s, Python decides %s\n%s", test.name, a, ours.Text(), b, text)
		}
	}
}

// the administrator's switch comes after code safety.
func TestTheAdministratorDecidesLast(t *testing.T) {
	g, _ := newGateway(t, answers(verifytest.Start(t).Verify), false)
	d := decide(t, g, ExecuteCode, `{"code": "print(1)"}`)
	want := "BLOCKED_ADMIN_POLICY: Python execution was verified, but server policy keeps code execution disabled " +
		"until QWED_MCP_TRUSTED_CODE_EXECUTION=true. (verification_id=" + d.VerificationID + ")"
	if d.Text() != want || d.ErrorCode != SwitchedOff || d.Verified {
		t.Errorf("got %q with %s, want %q", d.Text(), d.ErrorCode, want)
	}
	if d := decide(t, g, ExecuteCode, `{"code": "eval('1')"}`); d.ErrorCode != UnsafeCode {
		t.Errorf("got %s for unsafe code, want %s", d.ErrorCode, UnsafeCode)
	}
	for value, trusted := range map[string]bool{"": false, "false": false, "1": false, "yes": false, " true": false,
		"true": true, "TRUE": true, "True": true} {
		if IsTrusted(value) != trusted {
			t.Errorf("got that %q switches on: %v, want %v", value, !trusted, trusted)
		}
	}
}

// an analyser that fails, is slow, is away or answers something else approves nothing.
func TestAnAnalyserThatFailsApprovesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		verdict verify.Verdict
		err     error
		want    string
	}{
		"away": {verify.Verdict{}, errors.New("no sandbox"),
			"code safety verification failed: the analyser could not be asked"},
		"slow": {verify.Verdict{}, context.DeadlineExceeded,
			"code safety verification failed: the analyser did not answer in time"},
		"undecided": {verify.Verdict{Status: verify.Inconclusive, Engine: "code",
			Reason: "not analysed within 10 seconds"}, nil, "not analysed within 10 seconds"},
		"nothing":        {verify.Verdict{}, nil, "the program was not found safe"},
		"another engine": {verify.Verdict{Status: verify.Verified, Engine: "math", Reason: "2 = 2"}, nil, "2 = 2"},
		"no JSON": {verify.Verdict{Status: verify.Blocked, Engine: "code", Reason: "bad", Body: []byte("{")},
			nil, "bad"},
		"an approval that fails": {verify.Verdict{Status: verify.Verified, Engine: "code"}, errors.New("closed"),
			"code safety verification failed: the analyser could not be asked"},
	} {
		g, _ := newGateway(t,
			answers(func(context.Context, verify.Request) (verify.Verdict, error) { return test.verdict, test.err }),
			true)
		d := decide(t, g, ExecuteCode, `{"code": "print(1)"}`)
		if d.ErrorCode != UnsafeCode || d.Message != "QWED blocked python execution: "+test.want {
			t.Errorf("%s: got %+v, want %q", name, d, test.want)
		}
	}
}

func TestAnAnalyserIsNotWaitedForLongerThanItsTime(t *testing.T) {
	hangs := answers(func(ctx context.Context, _ verify.Request) (verify.Verdict, error) {
		<-ctx.Done()
		return verify.Verdict{}, ctx.Err()
	})
	g, err := New(Options{Admission: admit(t), Verifier: hangs, Recorder: &kept{}, Trusted: true, AnalysisTime: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := decide(t, g, ExecuteCode, `{"code": "1"}`); d.ErrorCode != UnsafeCode {
		t.Errorf("got %+v, want %s", d, UnsafeCode)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := g.Decide(ctx, Call{Tool: ExecuteCode, Arguments: []byte(`{"code": "1"}`)}); err == nil {
		t.Errorf("got %+v for a call that is over, want an error", d)
	}
}

// a policy without a handler.
func TestAToolWithoutHandlerIsBlocked(t *testing.T) {
	g, _ := newGateway(t, answers(nil), true)
	g.risk = func(string) (policies.Risk, bool) { return policies.RiskLow, true }
	if d := decide(t, g, "later", `{"a": 1}`); d.ErrorCode != NoHandler || d.RiskLevel != "low" ||
		d.Message != "MCP tool 'later' has no governance handler." {
		t.Errorf("got %+v, want %s", d, NoHandler)
	}
}

// 1000 identical calls have 1000 IDs.
func TestEachCallHasItsOwnID(t *testing.T) {
	g, log := newGateway(t, answers(nil), true)
	ids, form := map[string]bool{}, regexp.MustCompile(`^[0-9a-f]{64}$`)
	for range 1000 {
		d := decide(t, g, "verify_math", `{}`)
		if !form.MatchString(d.VerificationID) {
			t.Fatalf("got %q", d.VerificationID)
		}
		ids[d.VerificationID] = true
	}
	if len(ids) != 1000 || len(log.records) != 1000 {
		t.Errorf("got %d IDs and %d records, want 1000 of each", len(ids), len(log.records))
	}
}

func TestWhatCannotBeRecordedIsNotAllowed(t *testing.T) {
	g, log := newGateway(t, answers(func(context.Context, verify.Request) (verify.Verdict, error) {
		return verify.Verdict{Status: verify.Verified, Engine: "code"}, nil
	}), true)
	log.broken = true
	if d, err := g.Decide(t.Context(), Call{Caller: ann, Tool: ExecuteCode,
		Arguments: []byte(`{"code": "1"}`)}); err == nil || d.Verified {
		t.Errorf("got %+v and %v, want an error", d, err)
	}
}

func TestArgumentsThatCanBeReadInTwoWaysAreNone(t *testing.T) {
	g, _ := newGateway(t, answers(nil), true)
	for _, arguments := range []string{``, `null`, `[]`, `{`, `"x"`, `{"code": "1", "code": "eval()"}`,
		`{"code": "\ud800"}`, strings.Repeat("[", 1000)} {
		if d := decide(t, g, ExecuteCode, arguments); d.ErrorCode != NoCode {
			t.Errorf("%.40q: got %+v, want %s", arguments, d, NoCode)
		}
	}
	huge := decide(t, g, "x"+strings.Repeat("é", 5000), `{"a": 1e400, "b": "`+strings.Repeat("x", 9<<20)+`"}`)
	if len(huge.Message) > 1000 || len(huge.NormalizedArguments) != 0 {
		t.Errorf("got a message of %d bytes and %d arguments, want both bounded", len(huge.Message),
			len(huge.NormalizedArguments))
	}
}

func FuzzDecide(f *testing.F) {
	for _, test := range table {
		f.Add(test.tool, []byte(test.arguments))
	}
	g, err := New(Options{Admission: admit(f), Recorder: &kept{}, Verifier: answers(
		func(context.Context, verify.Request) (verify.Verdict, error) {
			return verify.Verdict{Status: verify.Verified, Engine: "code"}, nil
		}), Trusted: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tool string, arguments []byte) {
		d, err := g.Decide(t.Context(), Call{Caller: ann, Tool: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if d.Verified != (d.ErrorCode == "") || d.Verified != (d.Status == Allowed) {
			t.Errorf("got %+v, which contradicts itself", d)
		}
		if code, _ := d.Code(); d.Verified && tool == ExecuteCode && strings.TrimSpace(code) == "" {
			t.Errorf("got %+v, want no empty program", d)
		}
	})
}

// Each refusal has a record with its verification ID, so an account that causes too many waits for its
// turn. Other accounts do not wait (issue 23).
func TestRefusalsOfTheGatewayDelayFurtherCalls(t *testing.T) {
	g, log := newGateway(t, answers(nil), true)
	ended, end := context.WithCancel(t.Context())
	end()
	refusals := 0
	for ; g.opts.Admission.AwaitTurn(ended, ann) == nil; refusals++ {
		if refusals == 5000 {
			t.Fatal("calls do not wait after 5,000 refusals")
		}
		decide(t, g, "no_such_tool", `{}`)
	}
	if refusals < 500 || len(log.records) != refusals {
		t.Errorf("got %d records of %d refusals", len(log.records), refusals)
	}
	if _, err := g.Decide(ended, Call{Caller: ann, Tool: "no_such_tool"}); !errors.Is(err, context.Canceled) ||
		len(log.records) != refusals {
		t.Errorf("a further call: got %v, want that it waits", err)
	}
	if err := g.opts.Admission.AwaitTurn(ended, caller.Caller{Principal: "bob", Kind: caller.Local}); err != nil {
		t.Errorf("another account waits: %v", err)
	}
}
