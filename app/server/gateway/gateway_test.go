package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// two tools, and their arguments; no verify_* tool is listed.
func TestTheToolsAreTwo(t *testing.T) {
	for _, version := range versions {
		list, err := newLab(t).connect(t, version).ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 2 || list.Tools[0].Name != gateway.ExecuteCode ||
			list.Tools[1].Name != gateway.JobStatus {
			t.Fatalf("%s: got %+v and %v, want the two tools", version, list, err)
		}
		for i, want := range []string{
			`{"properties":{"background":{"default":false,"type":"boolean"},"code":{"type":"string"}},` +
				`"required":["code"],"type":"object"}`,
			`{"properties":{"job_id":{"type":"string"}},"required":["job_id"],"type":"object"}`,
		} {
			schema := list.Tools[i].InputSchema.(map[string]any)
			for _, property := range schema["properties"].(map[string]any) {
				delete(property.(map[string]any), "description")
			}
			if got, err := json.Marshal(schema); err != nil || string(got) != want {
				t.Errorf("%s: got %s and %v, want %s", version, got, err, want)
			}
		}
	}
}

var verificationID = regexp.MustCompile(`\(verification_id=([0-9a-f]{64})\)$`)

// T24, T35: a blocked call gets a tool result with the decision and is not
// executed.
func TestBlockedCallsAreResults(t *testing.T) {
	tests := map[string]struct {
		tool, arguments, code, text string
	}{
		"danger": {gateway.ExecuteCode, `{"code": "danger"}`, gateway.UnsafeCode,
			"BLOCKED: QWED blocked python execution: Dangerous pattern: danger (verification_id="},
		"no code": {gateway.ExecuteCode, `{}`, gateway.NoCode,
			"BLOCKED: Missing required non-empty 'code' argument. (verification_id="},
		"background": {gateway.ExecuteCode, `{"code": "1", "background": 1}`, gateway.BadBackground,
			"BLOCKED: 'background' must be a boolean when provided. (verification_id="},
		"no job": {gateway.JobStatus, `{}`, gateway.NoJobID,
			"BLOCKED: Missing required non-empty 'job_id' argument. (verification_id="},
		"no UUID": {gateway.JobStatus, `{"job_id": "not-a-uuid"}`, gateway.BadJobID,
			"BLOCKED: Invalid job_id format"},
		"another one": {"run_code", `{"code": "1"}`, gateway.UnknownTool,
			"BLOCKED: Unknown MCP tool 'run_code' is blocked by default. (verification_id="},
	}
	for name := range removedTools {
		tests[name] = struct{ tool, arguments, code, text string }{name, `{"expression": "x"}`, gateway.UnknownTool,
			"BLOCKED: Unknown MCP tool '" + name + "' is blocked by default. (verification_id="}
	}
	if len(removedTools) != 15 {
		t.Errorf("got %d removed tools, want the 15 of the document", len(removedTools))
	}
	for _, version := range versions {
		l := newLab(t)
		session := l.connect(t, version)
		for name, test := range tests {
			res := call(t, session, test.tool, json.RawMessage(test.arguments))
			text := textOf(res)
			found := verificationID.FindStringSubmatch(text)
			if !res.IsError || !strings.HasPrefix(text, test.text) || found == nil {
				t.Errorf("%s in %s: got %v %q, want an error that begins with %q", name, version, res.IsError, text,
					test.text)
				continue
			}
			decision := res.StructuredContent.(map[string]any)
			if decision["error_code"] != test.code || decision["verification_id"] != found[1] ||
				decision["verified"] != false {
				t.Errorf("%s in %s: got %v, want the decision with %s", name, version, decision, test.code)
			}
			if _, removed := removedTools[test.tool]; removed != (len(res.Content) == 2) {
				t.Errorf("%s: got %d contents, want what to write instead for removed tools alone", name,
					len(res.Content))
			}
		}
		if len(l.log.records) != len(tests) || len(l.scripts.begun) != 0 {
			t.Errorf("%s: got %d records and %d programs run, want %d and none", version, len(l.log.records),
				len(l.scripts.begun), len(tests))
		}
	}
}

// If arguments cannot be read, the answer contains a note, so that they do not seem to be missing.
func TestArgumentsThatAreNotRead(t *testing.T) {
	l := newLab(t)
	session := l.connect(t, "2025-11-25")
	res := call(t, session, gateway.ExecuteCode, json.RawMessage(`{"code": "print('\ud800')"}`))
	if len(res.Content) != 2 || !strings.HasPrefix(
		res.Content[1].(*mcp.TextContent).Text, "The arguments were not read: ") {
		t.Errorf("got %+v", res.Content)
	}
}

// the texts of synchronous programs.
func TestWhatAProgramComesTo(t *testing.T) {
	l := newLab(t)
	session := l.connect(t, "2025-11-25")
	for does, want := range map[string]string{
		"":      "Execution completed successfully.",
		"print": "STDOUT:\nout\n\nSTDERR:\nerr\n\nExecution completed successfully.",
		"raise": "STDOUT:\nbefore\n\nSTDERR:\nTraceback (most recent call last):\nZeroDivisionError: division by " +
			"zero\n\nExecution failed with return code 1",
		"exit":  "Execution failed with return code 3",
		"sleep": "Execution timed out after 30.0 seconds.",
		"flood": "STDOUT:\n" + strings.Repeat("x", 1<<20) +
			"\n\n[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]\n\nExecution failed with " +
			"return code -9",
		"eat": "the code needed more than its 536870912 bytes of memory\n\nExecution failed with return code -9",
	} {
		res := call(t, session, gateway.ExecuteCode, map[string]any{"code": "x = 1\n# " + does})
		if got := textOf(res); got != want || res.IsError != (does != "" && does != "print") {
			t.Errorf("%q: got %v %.300q, want %.300q", does, res.IsError, got, want)
		}
		last := l.log.records[len(l.log.records)-1]
		if res.Meta[verificationKey] != last.Decision.VerificationID || res.Meta[runKey] != last.RunID ||
			last.RunID == "" {
			t.Errorf("%q: got %v, want the IDs of the decision %+v", does, res.Meta, last)
		}
		if does == "sleep" && res.Content[1].(*mcp.TextContent).Text != "STDOUT:\nso far" {
			t.Errorf("got %v, want what was printed in a content of its own", res.Content)
		}
	}
	script := l.scripts.last.Script
	if script.Timeout != 30*time.Second || script.Stream != 1<<20 || l.scripts.last.Background {
		t.Errorf("got %+v, want 30 s and 1 MiB a stream", script)
	}
}

var dispatched = regexp.MustCompile(
	`^Verification order is being placed for the request ([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}` +
		`-[0-9a-f]{12})\. Check back using the 'verification_status' tool\.$`)

func dispatchOf(t *testing.T, session *mcp.ClientSession, code string) string {
	t.Helper()
	res := call(t, session, gateway.ExecuteCode, map[string]any{"code": code, "background": true})
	found := dispatched.FindStringSubmatch(textOf(res))
	if found == nil || res.IsError {
		t.Fatalf("got %q, want the dispatch text", textOf(res))
	}
	return found[1]
}

// await polls a job until it has ended.
func await(t *testing.T, session *mcp.ClientSession, id string) string {
	t.Helper()
	for {
		text := textOf(call(t, session, gateway.JobStatus, map[string]any{"job_id": id}))
		if !strings.HasSuffix(text, "...") {
			return text
		}
	}
}

// the texts of jobs.
func TestWhatAJobComesTo(t *testing.T) {
	l := newLab(t)
	session := l.connect(t, "2025-11-25")
	for does, want := range map[string]string{
		"print": "Status: success\n\nResult:\nSTDOUT:\nout\n\nSTDERR:\nerr\n\nExecution completed successfully.",
		"raise": "Status: failed\n\nResult:\nSTDOUT:\nbefore\n\nSTDERR:\nTraceback (most recent call " +
			"last):\nZeroDivisionError: division by zero\n\nExecution failed with return code 1",
		"sleep": "Status: timed_out\n\nResult:\nBackground verification timed out after 120 seconds. Process " +
			"terminated to prevent resource exhaustion.",
		"flood": "Status: failed\n\nResult:\nSTDOUT:\n" + strings.Repeat("x", 1<<20) +
			"\n\n[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]\n\nExecution failed with " +
			"return code -9",
	} {
		id := dispatchOf(t, session, "x = 1\n# "+does)
		for range 2 {
			if got := await(t, session, id); got != want {
				t.Errorf("%q: got %.300q, want %.300q", does, got, want)
			}
		}
	}
	if script := l.scripts.last.Script; script.Timeout != DefaultBackground || !l.scripts.last.Background {
		t.Errorf("got %+v, want a job of 120 s", script)
	}
	var going []string
	for range 6 {
		going = append(going, dispatchOf(t, session, "x = 1\n# wait"))
	}
	for range 4 + 5 { // those above, and the five that may run
		<-l.scripts.begun
	}
	running, queued := textOf(call(t, session, gateway.JobStatus, map[string]any{"job_id": strings.ToUpper(going[0])})),
		textOf(call(t, session, gateway.JobStatus, map[string]any{"job_id": going[5]}))
	if running != "Status: running..." || queued != "Status: queued..." {
		t.Errorf("got %q and %q, want the first running and the sixth queued", running, queued)
	}
	other := l.connect(t, "2025-11-25")
	const unknown = "3f8a1b2c-4d5e-4f7a-8b9c-0d1e2f3a4b5c"
	for id, asking := range map[string]*mcp.ClientSession{unknown: session, going[0]: other} {
		res := call(t, asking, gateway.JobStatus, map[string]any{"job_id": id})
		if got := textOf(res); got != "Error: Job ID '"+id+"' not found or expired." || !res.IsError {
			t.Errorf("got %q, want that it is not there", got)
		}
	}
}

// the programs of one session run one after the other. Programs of other sessions do not
// wait for them.
func TestSynchronousProgramsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newSessionLocks()
		unlock, err := locks.lock(t.Context(), "ses_1")
		if err != nil {
			t.Fatal(err)
		}
		entered := 0
		go func() {
			second, err := locks.lock(t.Context(), "ses_1")
			if err == nil {
				entered++
				second()
			}
		}()
		over, cancel := context.WithCancel(t.Context())
		var cancelled error
		go func() { _, cancelled = locks.lock(over, "ses_1") }()
		synctest.Wait()
		if other, err := locks.lock(t.Context(), "ses_2"); err != nil || entered != 0 {
			t.Errorf("got %v, and %d that entered, want another session's alone", err, entered)
		} else {
			other()
		}
		cancel()
		synctest.Wait()
		unlock()
		synctest.Wait()
		if entered != 1 || cancelled == nil {
			t.Errorf("got %d that entered and %v, want the second one, and an error for the one that was cancelled",
				entered, cancelled)
		}
	})
	l := newLab(t)
	session := l.connect(t, "2025-11-25")
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() { call(t, session, gateway.ExecuteCode, map[string]any{"code": "x = 1\n# print"}) })
	}
	calls.Wait()
	if l.scripts.most != 1 {
		t.Errorf("got %d programs at one time, want 1", l.scripts.most)
	}
}

// Q-044, T37: a job ends when the request that dispatched it is cancelled, or its session ends.
func TestWhatCancelsAJob(t *testing.T) {
	l := newLab(t)
	r, w := l.serve(t)
	answers := json.NewDecoder(r)
	ask := func(line string) (text string) {
		t.Helper()
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Result struct {
				Content []struct{ Text string }
			}
		}
		if err := answers.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.Result.Content) > 0 {
			text = answer.Result.Content[0].Text
		}
		return text
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},` +
		`"clientInfo":{"name":"host","version":"1"}}}`)
	const dispatch = `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"execute_python_code",` +
		`"arguments":{"code":"x = 1\n# wait","background":true},` +
		`"_meta":{"io.github.airlock-mcp/request":"\"forged\""}}}`
	var ids []string
	for _, request := range []string{`7`, `"7"`, `"forged"`} {
		found := dispatched.FindStringSubmatch(ask(fmt.Sprintf(dispatch, request)))
		if found == nil {
			t.Fatal("no job")
		}
		ids = append(ids, found[1])
		<-l.scripts.begun
	}
	state := func(i int) string {
		return ask(fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"verification_status",`+
				`"arguments":{"job_id":%q}}}`, 100+i, ids[i]))
	}
	if _, err := io.WriteString(w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`+
		"\n"); err != nil {
		t.Fatal(err)
	}
	got := state(0)
	for got == "Status: running..." {
		got = state(0)
	}
	if want := "Status: cancelled\n\nResult:\nJob was cancelled."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if state(1) != "Status: running..." || state(2) != "Status: running..." {
		t.Errorf("got %q and %q, want the jobs of other requests to go on", state(1), state(2))
	}
	w.Close()
	for _, err := r.Read(make([]byte, 1)); err == nil; _, err = r.Read(make([]byte, 1)) {
	}
}

// a job that was lost in a restart is not found, and the answer contains the reason.
func TestALostJobIsNotFoundWithItsReason(t *testing.T) {
	s := &Server{parts: Parts{Jobs: lostJobs{}}}
	res := s.status(t.Context(), lostCaller, "id")
	if textOf(res) != "Error: Job ID 'id' not found or expired." || !res.IsError || len(res.Content) != 2 ||
		!strings.Contains(res.Content[1].(*mcp.TextContent).Text, "has ended while the job was running (run run_1)") {
		t.Errorf("got %+v", res.Content)
	}
}

// the administrator's limit.
func TestTheAdministratorsLimitForJobs(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": DefaultBackground, "abc": DefaultBackground, "0": DefaultBackground, "-5": DefaultBackground,
		"nan": DefaultBackground, "inf": DefaultBackground,
		"1e999": DefaultBackground, "2": 2 * time.Second, " 300 ": 300 * time.Second, "2.5": 2500 * time.Millisecond,
		"600": MaxBackground, "601": MaxBackground, "9999": MaxBackground, "1e300": MaxBackground,
		"1e-30": time.Millisecond,
	} {
		if got := ParseBackground(value); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	for limit, want := range map[time.Duration]string{DefaultBackground: "120", 2 * time.Second: "2",
		2500 * time.Millisecond: "3", MaxBackground: "600", math.MaxInt64: "9223372037"} {
		if got := wholeSeconds(limit); got != want {
			t.Errorf("%v: got %s, want %s", limit, got, want)
		}
	}
}

// The number of requests that are remembered for a session is bounded.
func TestRequestsAreRememberedWithinBounds(t *testing.T) {
	s := &Server{dispatched: map[string]map[string]dispatch{}}
	for i := range 3 * maxDispatched {
		s.remember(lostCaller, fmt.Sprint(i), "job")
	}
	of := s.dispatched[lostCaller.Session]
	if _, newest := of[fmt.Sprint(3*maxDispatched-1)]; len(of) != maxDispatched || !newest {
		t.Errorf("got %d requests, the newest among them: %v", len(of), newest)
	}
}

func TestWhyAProgramIsNoRun(t *testing.T) {
	for want, err := range map[string]error{
		"Error: too many background jobs are queued, or too much output of earlier ones is kept.\nhint: wait until " +
			"queued jobs are over; what a job has printed is kept for an hour": runs.ErrJobs,
		"Error: there is no image for scripts.\nhint: airlock images build verify": &orchestrator.InputError{
			Problem: "there is no image for scripts", Advice: "airlock images build verify"},
		"Error: the program could not be run; its run's ID leads to the cause in the " +
			"server's log.": io.ErrUnexpectedEOF,
	} {
		if got := withHint(whyNoRun(err)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
