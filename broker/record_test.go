package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/policies"
)

// Each record of a call has on whose behalf it was made, and through whom (issue 31).
func TestRecordsHaveTheDelegation(t *testing.T) {
	f := newFixture(t, nil)
	f.open().Call(t.Context(), call("read_file", `{"path":"/srv"}`))
	kinds := map[audit.Kind]bool{}
	for _, r := range f.records(t) {
		if r.CallID == "" {
			continue
		}
		kinds[r.Kind] = true
		if want := `{"act":{"kind":"program","sub":"sha256:c"},"sub":"ann"}`; string(r.Delegation) != want {
			t.Errorf("the %s has the delegation %s, want %s", r.Kind, r.Delegation, want)
		}
	}
	if !kinds[audit.KindIntent] || !kinds[audit.KindOutcome] {
		t.Errorf("records of the call: %v", kinds)
	}
}

// One call writes one intent before the act, if it happens, and one outcome.
func checkRecords(t *testing.T, all []audit.Record, acted bool, outcome, errorType string) {
	t.Helper()
	var kinds []audit.Kind
	for _, r := range all {
		if r.Kind == audit.KindIntent || r.Kind == audit.KindOutcome {
			kinds = append(kinds, r.Kind)
		}
	}
	want := []audit.Kind{audit.KindOutcome}
	if acted {
		want = []audit.Kind{audit.KindIntent, audit.KindOutcome}
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("records: got %v, want %v", kinds, want)
	}
	last := all[len(all)-1]
	if last.Outcome != outcome || last.ErrorType != errorType {
		t.Errorf("outcome: got %q %q, want %q %q", last.Outcome, last.ErrorType, outcome, errorType)
	}
}

// The fields required by C-081.
func TestRecordIsComplete(t *testing.T) {
	f := newFixture(t, nil)
	f.open().Call(t.Context(), call("read_file", `{"path":"/srv/very-private"}`))
	all := f.records(t)
	intent, outcome := all[len(all)-2], all[len(all)-1]
	for _, r := range []audit.Record{intent, outcome} {
		for name, value := range map[string]string{
			"time": r.Time, "run_id": r.RunID, "call_id": r.CallID, "parent_id": r.ParentID, "session_id": r.SessionID,
			"principal": r.Principal,
			"server_id": r.ServerID, "tool_name": r.ToolName, "definition_digest": r.DefinitionDigest,
			"code_hash":      r.CodeHash,
			"arguments_hash": r.ArgumentsHash, "decision": r.Decision, "approval": r.Approval, "trace_id": r.TraceID,
			"prev": r.Prev, "hash": r.Hash,
		} {
			if value == "" {
				t.Errorf("%s: %s is empty", r.Kind, name)
			}
		}
		if !slices.Equal(r.Policies, []string{"default.read"}) {
			t.Errorf("%s: policies: got %v", r.Kind, r.Policies)
		}
		if text, _ := json.Marshal(r); strings.Contains(string(text), "very-private") {
			t.Errorf("%s: the argument's value is in the record", r.Kind)
		}
	}
	if outcome.ResultHash == "" || outcome.ResultSize == 0 {
		t.Errorf("outcome: got result %q of %d bytes", outcome.ResultHash, outcome.ResultSize)
	}
}

func TestPoliciesDoNotChangeUnrecorded(t *testing.T) {
	f := newFixture(t, nil)
	engine, err := policies.Load(policies.File{Name: "all.cedar",
		Source: []byte(`permit (principal, action, resource);`)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := admission.New(admission.Options{Log: noOperators{f.log}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SetRules(t.Context(), admission.Rules{Policies: engine}, "ann",
		"other policies are in force"); err == nil {
		t.Error("got nil, want an error")
	}
	b, err := broker.New(f.upstream, prompt{f.log}, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, b, broker.Run{ID: "run_1"}, f.snapshot, nil)
	checkAnswer(t, s.Call(t.Context(), call("delete_file", `{}`)), "PolicyDenied", "no policy is loaded")
}

// noOperators is a log that cannot take records of operators.
type noOperators struct{ *audit.Log }

func (l noOperators) Append(ctx context.Context, r audit.Record) error {
	if r.Kind == audit.KindOperator {
		return errors.New("no space left on device")
	}
	return l.Log.Append(ctx, r)
}

func TestNothingHappensUnrecorded(t *testing.T) {
	t.Run("the intent cannot be written", func(t *testing.T) {
		f := newFixture(t, nil)
		f.log.Close()
		checkAnswer(t, f.open().Call(t.Context(), call("read_file", `{"path":"x"}`)), "SandboxError",
			"could not be recorded")
		if len(f.upstream.calls) != 0 {
			t.Error("the server was called without a record")
		}
	})
	t.Run("the outcome cannot be written", func(t *testing.T) {
		f := newFixture(t, nil)
		f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			f.log.Close()
			return json.RawMessage(`{"content":[]}`), nil
		}
		checkAnswer(t, f.open().Call(t.Context(), call("read_file", `{"path":"x"}`)), "SandboxError", "withheld")
	})
	t.Run("without a log there is no broker", func(t *testing.T) {
		if _, err := broker.New(&upstream{}, nil, nil, nil); err == nil {
			t.Error("got nil, want an error")
		}
	})
}

func TestCancelledCallsAreRecorded(t *testing.T) {
	var log bytes.Buffer
	f := newFixture(t, func(o *options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	started := make(chan struct{})
	f.upstream.answer = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s := f.open()
	done := make(chan broker.Answer, 1)
	go func() { done <- s.Call(t.Context(), call("read_file", `{"path":"x"}`)) }()
	<-started
	s.Close()
	checkAnswer(t, <-done, "Killed", "")
	all := f.records(t)
	if last := all[len(all)-1]; last.Kind != audit.KindOutcome || last.Outcome != audit.OutcomeError {
		t.Errorf("got %s %s, want the call's outcome", last.Kind, last.Outcome)
	}
	checkAnswer(t, s.Call(t.Context(), call("read_file", `{"path":"x"}`)), "Killed", "over")
	if log.Len() > 0 {
		t.Errorf("warnings: got %s, want none of what ended with its run", log.String())
	}
}

// behind is a log that notes what is written behind an answer.
type behind struct {
	*audit.Log
	soon []audit.Record
}

func (b *behind) NoteSoon(r audit.Record) error {
	b.soon = append(b.soon, r)
	return b.Log.NoteSoon(r)
}

// Only the outcome of a call with an intent is written behind its answer: a refusal has no other record.
func TestRefusalsAreRecordedFirst(t *testing.T) {
	f := newFixture(t, nil)
	engine, err := policies.Load(policies.Default())
	if err != nil {
		t.Fatal(err)
	}
	log := &behind{Log: f.log}
	a, err := admission.New(admission.Options{Log: f.log, Rules: admission.Rules{Policies: engine,
		Operator: policies.Operator{"files": {TrustAnnotations: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(f.upstream, log, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, b, broker.Run{ID: "run_1"}, f.snapshot, nil)
	s.Call(t.Context(), call("no_such_tool", `{}`))
	if len(log.soon) != 0 {
		t.Errorf("a refusal is written behind its answer: %+v", log.soon)
	}
	checkAnswer(t, s.Call(t.Context(), call("read_file", `{"path":"a"}`)), "", "")
	if len(log.soon) != 1 || log.soon[0].Outcome != audit.OutcomeOK {
		t.Errorf("got %+v behind the answer, want the outcome", log.soon)
	}
}
