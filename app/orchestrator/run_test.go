package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/runner"
)

// Claims of code about its failure count only if the host has observed the failure.
func TestErrorsClaimedByCode(t *testing.T) {
	const reserved = `{"ok":false,"error":{"type":%q,"message":"m","retryable":true,"source":%q,"call_id":%q}}`
	toolError := json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"no such file"}]}`)
	tests := []struct {
		name, tool, claims, source string // tool is called first, and the error bears its ID
		forged                     string // this ID instead
		want                       Failure
	}{
		{"a class of its own", "", "KeyError", "code", "", Failure{Type: "KeyError", Source: "code"}},
		{"a limit of the host", "", "MemoryLimit", "sandbox", "", Failure{Type: "MemoryLimit", Source: "code"}},
		{"a timeout, to be tried again", "", "Timeout", "sandbox", "", Failure{Type: "Timeout", Source: "code"}},
		{"a refusal without a call", "", "PolicyDenied", "broker", "", Failure{Type: "PolicyDenied", Source: "code"}},
		{"a refusal of a call that never was", "", "PolicyDenied", "broker", "call_1",
			Failure{Type: "PolicyDenied", Source: "code"}},
		{"a refusal of a call that failed otherwise", "echo", "PolicyDenied", "broker", "",
			Failure{Type: "PolicyDenied", Source: "code"}},
		{"a source that does not exist", "", "E", "operator", "", Failure{Type: "E", Source: "code"}},
		{"what policy did refuse", "forbidden", "PolicyDenied", "broker", "",
			Failure{Type: "PolicyDenied", Source: "broker", CallID: "call"}},
		{"what policy did refuse, said by the code to be the sandbox's", "forbidden", "PolicyDenied", "sandbox", "",
			Failure{Type: "PolicyDenied", Source: "broker", CallID: "call"}},
		{"what a tool did say", "echo", "ToolError", "code", "",
			Failure{Type: "ToolError", Source: "tool", CallID: "call"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answers := func(context.Context, string) (json.RawMessage, error) { return toolError, nil }
			l := newLab(t, answers, admission.Limits{}, Options{}, func(_ context.Context, c *conn) error {
				id := test.forged
				if test.tool != "" {
					answer, err := c.call(test.tool, `{}`)
					if err != nil || answer.Error == nil {
						return fmt.Errorf("the call: got %+v, %w, want an error", answer, err)
					}
					id = answer.Error.CallID
				}
				return c.ask(methodFinish, fmt.Sprintf(reserved, test.claims, test.source, id), &struct{}{})
			})
			got := *l.run(t, Request{}).Envelope.Result.Error
			if test.want.CallID != "" {
				test.want.CallID = got.CallID
				if !strings.HasPrefix(got.CallID, "call_") {
					t.Errorf("call: got %q, want its ID", got.CallID)
				}
			}
			test.want.Message = "m"
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			all := l.records(t)
			if end := all[len(all)-1]; end.Kind != audit.KindRunEnd || end.ErrorSource != test.want.Source ||
				end.Limit != "" {
				t.Errorf("the record: got %s with error source %q and limit %q, want %q and none", end.Kind,
					end.ErrorSource, end.Limit, test.want.Source)
			}
		})
	}
}

// A limit that the code has met explains the failure that it delivers, though the
// sandbox is not over yet when that arrives.
func TestFailureAfterALimit(t *testing.T) {
	var l *lab
	l = newLab(t, nil, admission.Limits{}, Options{}, func(_ context.Context, c *conn) error {
		l.fake.MeetLimit(runner.ReasonProcesses)
		return c.ask(methodFinish,
			`{"ok":false,"error":{"type":"BlockingIOError","message":"[Errno 11] Resource temporarily unavailable"}}`,
			&struct{}{})
	})
	if got := l.run(t, Request{}).Envelope.Result.Error; got == nil || got.Type != errortype.Processes {
		t.Errorf("got %+v, want %s", got, errortype.Processes)
	}
}

func TestRetryableIsBelievedOfTheBroker(t *testing.T) {
	limits := admission.Limits{ToolRate: admission.Rate{Calls: 1, Per: time.Hour}}
	l := newLab(t, nil, limits, Options{}, func(_ context.Context, c *conn) error {
		var last broker.Answer
		for range 2 {
			var err error
			if last, err = c.call("echo", `{}`); err != nil {
				return err
			}
		}
		return c.ask(methodFinish, fmt.Sprintf(`{"ok":false,"error":{"type":"RateLimit","message":"m","call_id":%q}}`,
			last.Error.CallID), &struct{}{})
	})
	if got := l.run(t, Request{}).Envelope.Result.Error; got.Source != "broker" || !got.Retryable {
		t.Errorf("got %+v, want a retryable error of the broker", got)
	}
}

func TestTheFirstOfTwoResultsCounts(t *testing.T) {
	for i := range 20 {
		l := newLab(t, nil, admission.Limits{}, Options{}, func(_ context.Context, c *conn) error {
			const finish = `{"jsonrpc":"2.0","id":%d,"method":"run/finish","params":{"ok":true,"has_result":true,` +
				`"data":%d}}` + "\n"
			var all string
			for n := range 20 {
				all += fmt.Sprintf(finish, n, n)
			}
			_, err := io.WriteString(c, all)
			return errors.Join(err, c.next(&struct{}{}))
		})
		if got := string(l.run(t, Request{}).Envelope.Result.Data); got != "0" {
			t.Fatalf("run %d: got the result %s, want the first", i, got)
		}
	}
}

// A guest of Node is interrupted once for each request, and only then.
func TestTheGuestIsInterruptedWhenItAsks(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{}, func(ctx context.Context, c *conn) error {
		for range 3 {
			if err := c.ask(methodInterrupt, `{}`, &struct{}{}); err != nil {
				return err
			}
			select {
			case <-c.interrupted:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return c.ask(methodFinish, `{"ok":true,"has_result":true,"data":1}`, &struct{}{})
	})
	outcome, err := l.Run(t.Context(), Request{Language: "node", Code: []byte("play")})
	if err != nil || !outcome.Envelope.Result.OK {
		t.Errorf("got %+v, %v, want a result", outcome, err)
	}
}

// The signal would end a Python program, so its guest has no business to ask for it.
func TestOnlyNodeIsInterrupted(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{}, func(_ context.Context, c *conn) error {
		return c.ask(methodInterrupt, `{}`, &struct{}{})
	})
	if got := l.run(t, Request{}).Envelope.Result; got.OK || got.Error.Type != "SandboxError" {
		t.Errorf("got %+v, want a SandboxError", got)
	}
}

// If the host fails a run, the answer has no cause, and the log has it with the run's ID.
func TestFailuresOfTheHostAreLogged(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{}, func(context.Context, *conn) error { return nil })
	l.fake.WaitErr = errors.New("disk on fire")
	e := l.run(t, Request{}).Envelope
	if e.Result.OK || e.Result.Error.Type != "SandboxError" || strings.Contains(e.Result.Error.Message, "fire") {
		t.Errorf("got %+v, want a SandboxError without its cause", e.Result)
	}
	if got := l.logged.String(); !strings.Contains(got, "disk on fire") || !strings.Contains(got, e.RunID) {
		t.Errorf("got the log %s, want the cause and the run %s", got, e.RunID)
	}
}

// If the audit log cannot be written, no code runs. The caller gets one sentence without the
// cause, which is logged for the operator.
func TestARunThatCannotBeRecordedIsRefused(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{}, func(context.Context, *conn) error { return nil })
	if err := l.log.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Run(t.Context(), Request{Language: "python", Code: []byte("play")})
	var refused *UnrecordedError
	if !errors.As(err, &refused) || err.Error() != "the audit log cannot be written, so no code is run" ||
		refused.Hint() == "" || errors.Unwrap(refused) == nil {
		t.Errorf("got %v, want that nothing is run", err)
	}
}

// All calls of a run are recorded before its end, even if the run is stopped.
func TestNothingIsRecordedAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	const calls = 16
	var started, under atomic.Int32
	answers := func(ctx context.Context, _ string) (json.RawMessage, error) {
		under.Add(1)
		defer under.Add(-1)
		if started.Add(1) == calls {
			cancel()
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	l := newLab(t, answers, admission.Limits{}, Options{}, func(ctx context.Context, c *conn) error {
		for n := range 3 * calls {
			if _, err := fmt.Fprintf(
				c, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"server_id":"demo","name":"echo",`+
					`"arguments":{"n":%d}}}`+"\n", n, n); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return ctx.Err()
	})
	outcome, err := l.Run(ctx, Request{Language: "python", Code: []byte("play")})
	if err != nil {
		t.Fatal(err)
	}
	if got := under.Load(); got != 0 {
		t.Errorf("calls under way after the run: got %d, want 0", got)
	}
	if err := l.log.Close(); err != nil { // later records would fail, and be logged
		t.Fatal(err)
	}
	intents, outcomes := 0, 0
	all := l.records(t)
	for _, r := range all {
		switch r.Kind {
		case audit.KindIntent:
			intents++
		case audit.KindOutcome:
			outcomes++
		}
	}
	if last := all[len(all)-1]; last.Kind != audit.KindRunEnd {
		t.Errorf("the last record: got %s, want the run's end", last.Kind)
	}
	m := outcome.Envelope.Result.Metrics
	if intents < calls || intents != m.Calls || outcomes != m.Calls+m.CallsDenied {
		t.Errorf("got %d intents and %d outcomes of %d calls made and %d denied, want at least %d, and an outcome "+
			"for each",
			intents, outcomes, m.Calls, m.CallsDenied, calls)
	}
}

// An equal value has an equal placeholder in all that one run returns, prints and
// is answered, and in no other run.
func TestPlaceholdersOfARun(t *testing.T) {
	const held, ann, bob = "s3cr3t-token-of-crm", "ann@corp.io", "bob@corp.io"
	answers := func(context.Context, string) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"` + held + ` and again ` + held + `"}]}`), nil
	}
	for _, test := range []struct {
		name         string
		placeholders bool
		data, logged string
	}{
		{"kinds only", false,
			`["[redacted:email]","[redacted:email]","[redacted:held-credential] and again [redacted:held-credential]"]`,
			"[redacted:email] [redacted:email]"},
		{"with numbers", true,
			`["[redacted:email-1]","[redacted:email-2]","[redacted:held-credential-1] and again ` +
				`[redacted:held-credential-1]"]`,
			"[redacted:email-2] [redacted:email-1]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, answers, admission.Limits{}, Options{Placeholders: test.placeholders},
				func(_ context.Context, c *conn) error {
					answer, err := c.call("echo", `{}`)
					if err != nil {
						return err
					}
					var result struct{ Content []struct{ Text string } }
					if err := json.Unmarshal(answer.Raw, &result); err != nil {
						return err
					}
					if _, err := fmt.Fprintln(c.stdout, bob, ann); err != nil {
						return err
					}
					data, err := json.Marshal([]string{ann, bob, result.Content[0].Text})
					return errors.Join(err, c.ask(
						methodFinish, `{"ok":true,"has_result":true,"data":`+string(data)+`}`, &struct{}{}))
				})
			l.parts.Redactor.Hold(held)
			for range 2 { // runs share no numbers
				outcome := l.run(t, Request{})
				if got := string(outcome.Envelope.Result.Data); got != test.data {
					t.Errorf("the result: got %s, want %s", got, test.data)
				}
				if got := strings.TrimSpace(outcome.Stdout); got != test.logged {
					t.Errorf("the log: got %q, want %q", got, test.logged)
				}
			}
			all := l.records(t)
			if end := all[len(all)-1]; end.Redactions["email"] != 4 {
				t.Errorf("redactions: got %v, want each of the 4 addresses counted by kind", end.Redactions)
			}
		})
	}
}

// Code that asks for much and reads late gets all of it, and the host never
// holds more than its limits.
func TestUnreadAnswersAreHeldBack(t *testing.T) {
	const total, atOnce, inBuffers = 32, 8, 2
	text := strings.Repeat("x", 512<<10)
	var started, read, most atomic.Int32
	full := make(chan struct{})
	answers := func(context.Context, string) (json.RawMessage, error) {
		n := started.Add(1)
		most.Store(max(most.Load(), n-read.Load()))
		if n == atOnce {
			close(full)
		}
		<-full // else the first answers could leave no room for the calls behind them
		return json.RawMessage(`{"content":[{"type":"text","text":"` + text + `"}]}`), nil
	}
	limits := admission.Limits{Concurrent: atOnce, ResultBytes: 1 << 20, UnreadBytes: 2 << 20}
	l := newLab(t, answers, limits, Options{}, func(_ context.Context, c *conn) error {
		sent := make(chan error, 1)
		go func() {
			for n := range total {
				if _, err := fmt.Fprintf(
					c, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"server_id":"demo","name":"echo",`+
						`"arguments":{"n":%d}}}`+"\n", n, n); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		<-full
		for range total {
			var answer broker.Answer
			if err := c.next(&answer); err != nil {
				return err
			}
			if !answer.OK {
				return fmt.Errorf("got %+v, want ok", *answer.Error)
			}
			read.Add(1)
		}
		return errors.Join(<-sent, c.ask(methodFinish, `{"ok":true,"has_result":true,"data":"all of it"}`, &struct{}{}))
	})
	outcome := l.run(t, Request{})
	if got := string(outcome.Envelope.Result.Data); got != `"all of it"` {
		t.Errorf("got %s (%s), want all answers", got, outcome.Stderr)
	}
	if got := most.Load(); got > atOnce+inBuffers {
		t.Errorf("answers that were not read yet: got up to %d, want at most %d", got, atOnce+inBuffers)
	}
}

func TestSearchesOfCodeHaveARate(t *testing.T) {
	limits := admission.Limits{CatalogRate: admission.Rate{Calls: 2, Per: time.Hour}}
	l := newLab(t, nil, limits, Options{}, func(_ context.Context, c *conn) error {
		var search SearchAnswer
		if err := c.ask(methodSearch, `{"query":"tests"}`, &search); err != nil || search.Error != nil ||
			len(search.Tools) != 2 {
			return fmt.Errorf("the first search: got %+v, %w, want two tools", search, err)
		}
		var definition DefinitionAnswer
		if err := c.ask(methodGet, `{"server_id":"demo","name":"echo"}`, &definition); err != nil ||
			definition.Error != nil {
			return fmt.Errorf("the first definition: got %+v, %w", definition, err)
		}
		for _, method := range []string{methodSearch, methodGet} {
			var refused struct{ Error *broker.Error }
			if err := c.ask(method, `{}`, &refused); err != nil || refused.Error == nil ||
				refused.Error.Type != "RateLimit" || !refused.Error.Retryable {
				return fmt.Errorf("%s: got %+v, %w, want RateLimit", method, refused.Error, err)
			}
		}
		return c.ask(methodFinish, `{"ok":true,"has_result":true,"data":"held back"}`, &struct{}{})
	})
	if outcome := l.run(t, Request{}); string(outcome.Envelope.Result.Data) != `"held back"` {
		t.Errorf("got %s", outcome.Stderr)
	}
}

// Code that raises what a search was refused with is believed, as it is of calls.
func TestRefusedSearchesAreBelieved(t *testing.T) {
	limits := admission.Limits{CatalogRate: admission.Rate{Calls: 1, Per: time.Hour}}
	for _, ask := range []struct {
		method, first, params, want string
		retryable                   bool
	}{
		{methodSearch, `{}`, `{}`, "RateLimit", true},
		{methodGet, `{"server_id":"demo","name":"echo"}`, `{}`, "RateLimit", true},
		{methodGet, `{"server_id":"demo","name":"nothing"}`, "", "UnknownTool", false},
		{methodSearch, `{"server_id":"nothing"}`, "", "UnknownTool", false},
		{methodSearch, `{"detail":"nothing"}`, "", "ValidationError", false},
	} {
		l := newLab(t, nil, limits, Options{}, func(_ context.Context, c *conn) error {
			var refused struct{ Error *broker.Error }
			if err := c.ask(ask.method, ask.first, &refused); err != nil {
				return err
			}
			if ask.params != "" {
				if err := c.ask(ask.method, ask.params, &refused); err != nil {
					return err
				}
			}
			if refused.Error == nil {
				return fmt.Errorf("%s was not refused", ask.method)
			}
			return c.ask(methodFinish, fmt.Sprintf(
				`{"ok":false,"error":{"type":%q,"message":"m","call_id":%q}}`, refused.Error.Type,
				refused.Error.CallID), &struct{}{})
		})
		if got := l.run(t, Request{}).Envelope.Result.Error; got.Type != ask.want || got.Source != "broker" ||
			got.Retryable != ask.retryable || got.CallID != "" {
			t.Errorf("%s %s: got %+v, want %s of the broker", ask.method, ask.params, got, ask.want)
		}
	}
}

func TestRecordsNameTheLimits(t *testing.T) {
	l := newLab(t, nil, admission.Limits{Calls: 7}, Options{}, func(ctx context.Context, _ *conn) error {
		<-ctx.Done()
		return ctx.Err()
	})
	outcome := l.run(t, Request{Timeout: 20 * time.Millisecond})
	if got := outcome.Envelope.Result.Error; got.Type != "Timeout" || got.Retryable {
		t.Errorf("got %+v, want a timeout that the host saw", got)
	}
	var start, end audit.Record
	for _, r := range l.records(t) {
		switch r.Kind {
		case audit.KindRunStart:
			start = r
		case audit.KindRunEnd:
			end = r
		}
	}
	for name, want := range map[string]string{"limits.calls": "7", "sandbox.timeout": "20ms",
		"sandbox.memory": "536870912", "limits.rate": "1000/5s"} {
		if got := start.Limits[name]; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if end.Limit != "sandbox.timeout" || end.ErrorSource != "code" {
		t.Errorf("the end: got limit %q, source %q, want sandbox.timeout, code", end.Limit, end.ErrorSource)
	}
}
