package code

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
)

// outcomeWith returns an outcome with the given result and output.
func outcomeWith(result orchestrator.Result, p orchestrator.Printed) *orchestrator.Outcome {
	o := outcomeOf("run_0123456789abcdef0123456789abcdef", result)
	o.Printed = p
	return o
}

func ok(data string) orchestrator.Result {
	return orchestrator.Result{OK: true, Data: json.RawMessage(data)}
}

// bare answers without files.
var bare = &Server{files: noFiles{}}

// The text of an answer is the result or the error of the run, the end of its output, and one
// line with its ID.
func TestTheTextOfAnAnswer(t *testing.T) {
	const line = "run_id: run_0123456789abcdef0123456789abcdef"
	failure := orchestrator.Failure{Type: "KeyError", Message: "'id'"}
	retry := orchestrator.Failure{Type: "RateLimit", Message: "too fast", Retryable: true, Source: "broker"}
	traced := orchestrator.Failure{Type: "KeyError", Message: "'id'",
		Traceback: "Traceback:\n  line 1\nKeyError: 'id'\n"}
	hinted := orchestrator.Failure{Type: "KeyError", Message: "'id'; did you mean 'ids'?",
		Traceback: "Traceback:\n  line 1\nKeyError: 'id'\n"}
	for name, c := range map[string]struct {
		outcome *orchestrator.Outcome
		want    []string
	}{
		"data": {outcomeWith(ok(`{"n": 1}`), orchestrator.Printed{}), []string{`{"n": 1}`, line}},
		"a text": {outcomeWith(ok(`"two\nlines"`), orchestrator.Printed{}),
			[]string{"two\nlines", line}},
		"an empty text": {outcomeWith(ok(`""`), orchestrator.Printed{}), []string{`""`, line}},
		"null":          {outcomeWith(ok(`null`), orchestrator.Printed{}), []string{"null", line}},
		"logs": {outcomeWith(ok(`1`), orchestrator.Printed{Stdout: "a\nb\n", Stderr: "c\n"}),
			[]string{"1", "stdout:\na\nb", "stderr:\nc", line}},
		"the printed line": {outcomeWith(ok(`{"n":1}`), orchestrator.Printed{Stdout: "a\n{\"n\":1}\n"}),
			[]string{`{"n":1}`, "stdout:\na", line}},
		"only the printed line": {outcomeWith(ok(`{"n":1}`), orchestrator.Printed{Stdout: "{\"n\":1}\n"}),
			[]string{`{"n":1}`, line}},
		"long logs": {outcomeWith(ok(`1`),
			orchestrator.Printed{Stdout: strings.Repeat("x", maxLogTail+7)}),
			[]string{"1", "stdout:\n[7 bytes before]\n" + strings.Repeat("x", maxLogTail), line}},
		"cut logs": {outcomeWith(ok(`1`),
			orchestrator.Printed{Stdout: "a\n<TRUNCATED 9 bytes>\n", StdoutCut: 9}),
			[]string{"1", "stdout:\na\n<TRUNCATED 9 bytes>", line}},
		"logs that are all cut": {outcomeWith(ok(`1`), orchestrator.Printed{StderrCut: 9}),
			[]string{"1", "stderr: <TRUNCATED 9 bytes>", line}},
		"a failure": {outcomeWith(orchestrator.Result{Error: &failure}, orchestrator.Printed{}),
			[]string{"KeyError: 'id'", line}},
		"a failure with a trace": {outcomeWith(orchestrator.Result{Error: &traced}, orchestrator.Printed{}),
			[]string{"Traceback:\n  line 1\nKeyError: 'id'", line}},
		"a trace that was printed": {outcomeWith(orchestrator.Result{Error: &traced},
			orchestrator.Printed{Stderr: "a\n" + traced.Traceback}),
			[]string{"Traceback:\n  line 1\nKeyError: 'id'", "stderr:\na", line}},
		"a failure with a hint": {outcomeWith(orchestrator.Result{Error: &hinted}, orchestrator.Printed{}),
			[]string{"KeyError: 'id'; did you mean 'ids'?\nTraceback:\n  line 1\nKeyError: 'id'", line}},
		"a failure to try again": {outcomeWith(orchestrator.Result{Error: &retry}, orchestrator.Printed{}),
			[]string{"RateLimit: too fast", line + "; retryable"}},
		"a failure after calls": {outcomeWith(orchestrator.Result{Error: &failure,
			Metrics: orchestrator.Metrics{Calls: 3}}, orchestrator.Printed{}),
			[]string{"KeyError: 'id'", line + "; calls made: 3"}},
		"a result with no calls": {outcomeWith(orchestrator.Result{OK: true, Data: json.RawMessage("1"),
			Metrics: orchestrator.Metrics{Calls: 3}}, orchestrator.Printed{}), []string{"1", line}},
		"marks of HTML": {outcomeWith(ok(`"<&>"`), orchestrator.Printed{}), []string{"<&>", line}},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := bare.finished(t.Context(), c.outcome, server.Stateless)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, content := range res.Content {
				got = append(got, content.(*mcp.TextContent).Text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("texts differ (-want +got):\n%s", diff)
			}
			if res.IsError == c.outcome.Envelope.Result.OK {
				t.Errorf("got isError %v for ok %v", res.IsError, c.outcome.Envelope.Result.OK)
			}
			if diff := cmp.Diff(c.outcome.Envelope, res.Meta[envelopeKey]); diff != "" {
				t.Errorf("the envelope in _meta differs (-want +got):\n%s", diff)
			}
		})
	}
}

// Some hosts show the model only structured content, so the ends of the output are there, too.
func TestStructuredContentHasTheOutput(t *testing.T) {
	o := outcomeWith(ok(`1`),
		orchestrator.Printed{Stdout: strings.Repeat("row\n", 1000) + "1\n", Stderr: "a warning\n"})
	res, err := bare.finished(t.Context(), o, server.Stateless)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Stdout, Stderr string }
	if err := json.Unmarshal(res.StructuredContent.(json.RawMessage), &got); err != nil {
		t.Fatal(err)
	}
	if text := textOf(res); got.Stderr != "a warning" || !strings.HasSuffix(got.Stdout, "row\nrow") ||
		!strings.Contains(text, "stdout:\n"+got.Stdout+"\nstderr:\n"+got.Stderr+"\n") {
		t.Errorf("got %+v, want the output that the texts have: %s", got, text)
	}
}

// If a program sets no result, the answer has a note and its output.
func TestAnAnswerWithoutAResult(t *testing.T) {
	o := outcomeWith(ok(`null`), orchestrator.Printed{Stdout: strings.Repeat("row\n", 1000)})
	o.Envelope.Note, o.Envelope.Printed = "the code has not set `result`", "row\n"
	res, err := bare.finished(t.Context(), o, server.Stateless)
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(res)
	if !strings.Contains(text, "null\nthe code has not set `result`\nstdout:\nrow") ||
		strings.Count(text, "row") < 900 {
		t.Errorf("got %d bytes starting with %.80q, want the note and the end of what was printed", len(text), text)
	}
	if got, want := string(res.StructuredContent.(json.RawMessage)),
		`{"ok":true,"data":null,"note":"the code has not set `+"`result`"+
			`","printed":"row\n","run_id":"run_0123456789abcdef0123456789abcdef"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// While a run waits for a person, the answer describes where to answer: in the host only if it
// can show forms.
func TestStandingSaysWhereToAnswer(t *testing.T) {
	q := approval.Question{ID: "apr_7", Subject: approval.Subject{ServerID: "crm", ToolName: "delete_contact"}}
	waiting := runs.Status{ID: "run_1", State: runs.Running, Questions: []approval.Question{q}}
	for hostAsks, want := range map[bool]string{
		true: "waiting for a person to allow crm.delete_contact: in the host's form, or in a terminal with `airlock " +
			"approvals show apr_7` and `airlock approvals watch`",
		false: "waiting for a person to allow crm.delete_contact: in a terminal with `airlock approvals show apr_7` " +
			"and `airlock approvals watch`",
	} {
		if got := standing(waiting, time.Now(), hostAsks); got != want {
			t.Errorf("host asks %t: got %q, want %q", hostAsks, got, want)
		}
	}
	waiting.Suspended = time.Date(2026, 11, 28, 9, 30, 0, 0, time.UTC)
	const since = "; suspended since 2026-11-28T09:30:00Z, it takes up nothing meanwhile"
	if got := standing(waiting, time.Now(), false); !strings.HasSuffix(got, "`airlock approvals watch`"+since) {
		t.Errorf("got %q, want since when it is suspended", got)
	}
	waiting.Questions = nil
	if got, want := standing(waiting, time.Now(), false), "answered: it waits for a free sandbox to go on"+since; got !=
		want {
		t.Errorf("got %q, want %q", got, want)
	}
}
