package orchestrator

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

func TestJudge(t *testing.T) {
	printed := logs{lastLines: []byte("thinking\n{\"a\": 1}\ndone\n")}
	tests := []struct {
		name      string
		ended     ending
		logs      logs
		want      string // the error's type, or the data
		retryable bool
	}{
		{"a delivered result", ending{delivered: &finish{OK: true, HasResult: true, Data: json.RawMessage(`[1]`)}},
			printed, `[1]`, false},
		{"a delivered null is a result",
			ending{delivered: &finish{OK: true, HasResult: true, Data: json.RawMessage(`null`)}}, printed, `null`,
			false},
		{"no result: the last line that is JSON", ending{delivered: &finish{OK: true}}, printed, `{"a": 1}`, false},
		{"no result: JSON over several lines", ending{delivered: &finish{OK: true}},
			logs{lastLines: []byte("[1]\n{\n  \"a\": [\n    \"b\"\n  ]\n}\n")}, `{"a":["b"]}`, false},
		{"no result: an array over several lines", ending{delivered: &finish{OK: true}},
			logs{lastLines: []byte("[\n  {\n    \"a\": 1\n  }\n]")}, `[{"a":1}]`, false},
		{"no result: what only looks like JSON", ending{delivered: &finish{OK: true}},
			logs{lastLines: []byte("7\n{\n  a\n}\n")}, `7`, false},
		{"no result, nothing printed", ending{delivered: &finish{OK: true}}, logs{}, `null`, false},
		{"no result, only text printed", ending{delivered: &finish{OK: true}}, logs{lastLines: []byte("hello\n")},
			`null`, false},
		{"a delivered error", ending{delivered: &finish{Error: &guestError{Type: "KeyError", Retryable: true}}},
			printed, "KeyError", false},
		{"an exit without delivery, status 0", ending{exit: &runner.Exit{}}, printed, `{"a": 1}`, false},
		{"an exit without delivery, status 3", ending{exit: &runner.Exit{Code: 3}}, printed, "NonZeroExit", false},
		{"a signal", ending{exit: &runner.Exit{Signal: 11}}, printed, "Killed", false},
		{"out of memory", ending{exit: &runner.Exit{Signal: 9, Reason: runner.ReasonMemory}}, printed, "MemoryLimit",
			false},
		{"out of processes", ending{exit: &runner.Exit{Signal: 9, Reason: runner.ReasonProcesses}}, printed,
			"ProcessLimit", false},
		{"out of disk", ending{exit: &runner.Exit{Code: 1, Reason: runner.ReasonDisk}}, printed, "DiskLimit", false},
		{"out of time", ending{timeout: true}, printed, "Timeout", false},
		{"out of time while a tool was awaited", ending{timeout: true, pending: 1}, printed, "Timeout", true},
		{"cancelled", ending{cancelled: true}, printed, "Killed", false},
		{"too much output", ending{flood: true}, printed, "OutputLimit", false},
		{"a broken protocol", ending{protocol: errors.New("x")}, printed, "SandboxError", false},
		{"a failure of the host says no cause", ending{internal: errors.New("disk on fire at /srv/secret")}, printed,
			"SandboxError", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &run{plan: plan{limits: runner.DefaultLimits()}}
			got := r.judge(test.ended, test.logs)
			said := string(got.Data)
			if got.Error != nil {
				said = got.Error.Type
				if got.Error.Retryable != test.retryable {
					t.Errorf("retryable: got %v, want %v", got.Error.Retryable, test.retryable)
				}
				if strings.Contains(got.Error.Message, "/srv") {
					t.Errorf("the message tells a cause: %s", got.Error.Message)
				}
			}
			if said != test.want || got.OK != (got.Error == nil) {
				t.Errorf("got %s (ok %v), want %s", said, got.OK, test.want)
			}
		})
	}
}

func TestLimitsOfARequest(t *testing.T) {
	limits := runner.DefaultLimits()
	limits.Timeout = 10 * time.Second
	o := &Orchestrator{opts: Options{Limits: limits}}
	for asked, want := range map[time.Duration]time.Duration{
		0:           10 * time.Second,
		time.Second: time.Second,
		time.Hour:   10 * time.Second, // a caller cannot raise it
	} {
		if got := o.limits(Request{Timeout: asked}).Timeout; got != want {
			t.Errorf("asked for %v: got %v, want %v", asked, got, want)
		}
	}
}

func TestMissingData(t *testing.T) {
	printed := runner.Output{Tail: []byte("[{'a': 1}]\n")}
	tests := []struct {
		name  string
		ended ending
		tail  string
		note  string // a part of it; empty for none
	}{
		{"no result", ending{delivered: &finish{OK: true, Note: "main() is never called"}}, "rows\n",
			"main() is never called"},
		{"no result and no note", ending{delivered: &finish{OK: true}}, "rows\n", noteNoResult},
		{"null as the result", ending{delivered: &finish{OK: true, HasResult: true, Data: []byte("null")}}, "rows\n",
			""},
		{"the last line is the result", ending{delivered: &finish{OK: true}}, "null\n", ""},
		{"without exit hooks", ending{exit: &runner.Exit{}}, "rows\n", noteExited},
		{"a secret in the note", ending{delivered: &finish{OK: true, Note: "AKIAIOSFODNN7EXAMPLA is not called"}},
			"rows\n", "is not called"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &run{plan: plan{redactor: redact.New()}}
			note, end := r.missingData(test.ended, succeeded(nil), logs{stdout: printed, lastLines: []byte(test.tail)})
			if !strings.Contains(note, test.note) || (test.note == "") != (note == "") ||
				strings.Contains(note, "AKIAIOSFODNN7EXAMPLA") {
				t.Errorf("note: got %q, want %q in it", note, test.note)
			}
			if want := map[bool]string{true: test.tail}[test.note != ""]; end != want {
				t.Errorf("printed: got %q, want %q", end, want)
			}
		})
	}
	if note, end := (&run{plan: plan{redactor: redact.New()}}).missingData(
		ending{}, failed(errortype.Timeout, false, "x"), logs{}); note+end != "" {
		t.Errorf("a failure: got %q and %q, want neither", note, end)
	}
}

// A call to a server that was missing when the run began is retryable as long as Airlock
// reconnects, in both languages. The host determines that, not the code.
func TestServersThatComeBackAreRetryable(t *testing.T) {
	snapshot, err := catalog.NewSnapshot([]catalog.Server{
		{ID: "crm", Problem: "it exited with status 1", Retrying: true},
		{ID: "files", Problem: "it exited with status 1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{plan: plan{snapshot: snapshot}}
	for _, test := range []struct {
		failure guestError
		want    bool
	}{
		{guestError{Type: "ServerUnavailable", Message: `Server "crm" is not available: it exited with status 1`},
			true},
		{guestError{Type: "TypeError",
			Message: `listContacts is not a function: Server "crm" is not available: it exited with status 1`}, true},
		{guestError{Type: "ServerUnavailable", Message: `Server "files" is not available: it exited with status 1`},
			false},
		{guestError{Type: "ServerUnavailable", Message: `Server "mail" is not available`}, false},
		{guestError{Type: "KeyError", Message: `'crm'`}, false},
	} {
		if got := r.believe(test.failure); got.Retryable != test.want || got.Source != errortype.SourceCode {
			t.Errorf("%s: got %+v, want retryable %v", test.failure.Message, got, test.want)
		}
	}
}

// Issue 27: a timeout names the background only if that allows more time.
func TestTimeoutsNameTheBackground(t *testing.T) {
	o := &Orchestrator{opts: Options{Limits: runner.Limits{Timeout: time.Minute}, BackgroundTimeout: 10 * time.Minute}}
	shorter := &Orchestrator{opts: Options{Limits: runner.Limits{Timeout: time.Hour}, BackgroundTimeout: time.Minute}}
	for name, test := range map[string]struct {
		of   *Orchestrator
		req  Request
		want bool
	}{
		"of a host":             {o, Request{PreviewLarge: true}, true},
		"with a shorter limit":  {o, Request{PreviewLarge: true, Timeout: time.Second}, true},
		"in the background":     {o, Request{PreviewLarge: true, Background: true}, false},
		"of a terminal":         {o, Request{}, false},
		"no longer than others": {shorter, Request{PreviewLarge: true}, false},
	} {
		for _, pending := range []int{0, 3} {
			r := &run{plan: plan{request: test.req, limits: test.of.limits(test.req), longer: test.of.longer(test.req)}}
			said := r.judgeTimeout(pending).Error.Message
			if got := strings.Contains(said, "`background: true`, which allows 10m0s"); got != test.want {
				t.Errorf("%s: got %q, want the background: %v", name, said, test.want)
			}
		}
	}
}
