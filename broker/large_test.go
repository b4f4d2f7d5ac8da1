package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
)

const resultOf = `{"content":[{"type":"text","text":"%s"}]%s}`

// A result that is too large for an answer is stored whole, without credentials. The call has succeeded: its record
// has the digest of all of the result. The code gets an error that names the file.
func TestLargeResultsAreKeptAsFiles(t *testing.T) {
	kept := func(problem string) func(context.Context, broker.Call, json.RawMessage) (string, string) {
		return func(_ context.Context, call broker.Call, result json.RawMessage) (string, string) {
			want := fmt.Sprintf(resultOf, strings.Repeat("x", 2000)+"[redacted:held-credential]", "")
			if string(result) != want {
				t.Errorf("%s: got %.100s … %s, want all without the credential", call.Name, result, result[2000:])
			}
			return "/session/file", problem
		}
	}
	keeps := func(context.Context, broker.Call, json.RawMessage) (string, string) { return "/session/file", "" }
	large := strings.Repeat("x", 2000) + heldCanary
	tests := map[string]struct {
		keep             func(context.Context, broker.Call, json.RawMessage) (string, string)
		result           string
		limits           admission.Limits
		want, file       string
		outcome, limit   string
		recorded, replay bool
	}{
		"kept": {kept(""), fmt.Sprintf(resultOf, large, ""), admission.Limits{},
			"OutputLimit: all of it is in /session/file: read that file", "/session/file", audit.OutcomeOK, "", true,
			false},
		"the session is full": {kept("it is full"), fmt.Sprintf(resultOf, large, ""), admission.Limits{},
			"OutputLimit: is not kept as a file: it is full; ask the tool for less", "", audit.OutcomeError,
			"limits.resultBytes", true, true},
		"no session": {nil, fmt.Sprintf(resultOf, large, ""), admission.Limits{},
			"OutputLimit: more than the 1000 that one call may return; ask the tool for less", "", audit.OutcomeError,
			"limits.resultBytes", false, true},
		"more than is kept": {keeps, fmt.Sprintf(resultOf, large, ""), admission.Limits{LargeResultBytes: 1500},
			"OutputLimit: more than the 1500 that one call may return; ask the tool for less", "", audit.OutcomeError,
			"limits.resultBytes", false, true},
		"more than the run may receive": {keeps, fmt.Sprintf(resultOf, large, ""), admission.Limits{BytesIn: 1500},
			"BudgetExceeded: more than 1500 bytes", "", audit.OutcomeError, "limits.bytesIn", true, true},
		"a large failure": {keeps, fmt.Sprintf(resultOf, large, `,"isError":true`), admission.Limits{},
			"ToolError: xxxx", "", audit.OutcomeError, "", true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *options) {
				o.Redactor = holding()
				o.Limits = test.limits
				o.Limits.ResultBytes = 1000
			})
			f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(test.result), nil
			}
			recorded := exchanges{}
			s := f.openWith(&broker.RunOptions{Keep: test.keep, Recording: &recorded})
			defer s.Close()
			answer := s.Call(t.Context(), call("read_file", `{"path":"x"}`))
			kind, message, _ := strings.Cut(test.want, ": ")
			checkAnswer(t, answer, kind, message)
			if answer.Error.File != test.file || len(answer.Raw) != 0 ||
				strings.Contains(answer.Error.Message, "c4nary") {
				t.Errorf("got file %q, %d bytes and %q", answer.Error.File, len(answer.Raw), answer.Error.Message)
			}
			all := f.records(t)
			last := all[len(all)-1]
			if last.Outcome != test.outcome || last.Limit != test.limit ||
				test.recorded && (last.ResultSize < 2000 || last.ResultHash == "") {
				t.Errorf("got the record %+v", last)
			}
			if (test.file != "") != (last.Detail == "kept as /session/file") {
				t.Errorf("got the detail %q", last.Detail)
			}
			if (len(recorded) == 1) != test.replay {
				t.Errorf("got a recording of %d calls, want one: %v", len(recorded), test.replay)
			}
			if answer := s.Call(t.Context(), call("read_file", `{"path":"y"}`)); answer.Error.Type != kind {
				t.Errorf("the next call: got %+v", answer.Error)
			}
		})
	}
}

// The broker redacts and stores one large result at a time, for whichever runs.
func TestOneLargeResultAtATime(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Limits.ResultBytes = 1000 })
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(fmt.Sprintf(resultOf, strings.Repeat("x", 2000), "")), nil
	}
	var now atomic.Int32
	keep := func(context.Context, broker.Call, json.RawMessage) (string, string) {
		if now.Add(1) > 1 {
			t.Error("two at a time")
		}
		defer now.Add(-1)
		return "/session/file", ""
	}
	var calls sync.WaitGroup
	for range 4 {
		s := f.openWith(&broker.RunOptions{Keep: keep})
		for range 4 {
			calls.Go(func() {
				if answer := s.Call(t.Context(), call("read_file", `{"path":"x"}`)); answer.Error.File == "" {
					t.Errorf("got %+v, want a file", answer.Error)
				}
			})
		}
	}
	calls.Wait()
}
