package broker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/redact"
)

const heldCanary = "c4nary-held-0123456789"

func holding() *redact.Redactor {
	r := redact.New()
	r.Hold(heldCanary)
	return r
}

// A question is stored, and shown on terminals and by hosts: credentials held by Airlock are
// removed from it, while the call itself is made unchanged.
func TestAQuestionShowsNoHeldCredential(t *testing.T) {
	people := &counting{verdict: approval.Verdict{Answer: approval.Yes}}
	f := newFixture(t, func(o *options) { o.Approver, o.Redactor = people, holding() })
	s := open(t, f.Broker, broker.Run{ID: "run_1", Code: "x = '" + heldCanary + "'"}, f.snapshot, &broker.RunOptions{})
	defer s.Close()
	s.Call(t.Context(), call("delete_file", `{"path":"a/`+heldCanary+`","`+heldCanary+
		`":["YzRuYXJ5LWhlbGQtMDEyMzQ1Njc4OQ=="]}`))
	if len(people.asked) != 1 {
		t.Fatalf("asked %d times, want once", len(people.asked))
	}
	text, err := json.Marshal(people.asked[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, canary := range []string{"c4nary", "YzRuYXJ5"} {
		if strings.Contains(string(text), canary) || strings.Contains(approval.Text(people.asked[0]), canary) {
			t.Errorf("%s is in %s", canary, text)
		}
	}
	if sent := f.upstream.calls[0]; !strings.Contains(sent, heldCanary) {
		t.Errorf("the server was sent %s, want what the code gave", sent)
	}
}

// A recording contains no held credential, and can still be replayed.
func TestARecordingKeepsNoHeldCredential(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Redactor = holding() })
	store, err := replay.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := store.Create(replay.Head{RunID: "run_1", Language: "python"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := f.openWith(&broker.RunOptions{Recording: recorder})
	c := call("read_file", `{"path":"a/`+heldCanary+`"}`)
	s.Call(t.Context(), c)
	s.Close()
	if err := recorder.Close(replay.Output{}); err != nil {
		t.Fatal(err)
	}
	recording, err := store.Load("run_1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(recording)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "c4nary") || !strings.Contains(string(text), "[redacted:held-credential]") {
		t.Errorf("the recording is %s", text)
	}
	again := open(t, f.Broker, broker.Run{ID: "run_2"}, f.snapshot, &broker.RunOptions{Player: recording.Player()})
	defer again.Close()
	if answer := again.Call(t.Context(), c); !answer.OK {
		t.Errorf("the replay answers %+v", answer)
	}
}

// A credential that Airlock gets after the answer was redacted is also removed from the recording.
func TestARecordingKeepsNoCredentialThatComesMeanwhile(t *testing.T) {
	redactor, answered := redact.New(), false
	f := newFixture(t, func(o *options) {
		o.Redactor = redactor
		o.Now = func() time.Time { // called for the outcome's duration, after the redaction
			if answered {
				redactor.Hold(heldCanary)
			}
			return time.Now()
		}
	})
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		answered = true
		return json.RawMessage(`{"content":[{"type":"text","text":"` + heldCanary + `"}]}`), nil
	}
	kept := &exchanges{}
	s := f.openWith(&broker.RunOptions{Recording: kept})
	defer s.Close()
	if answer := s.Call(t.Context(), call("read_file", `{"path":"a"}`)); !answer.OK ||
		!strings.Contains(string(answer.Raw), heldCanary) {
		t.Fatalf("got %+v, want what was no credential of Airlock's yet", answer)
	}
	if text := string((*kept)[0].Answer); strings.Contains(text, "c4nary") ||
		!strings.Contains(text, "[redacted:held-credential]") {
		t.Errorf("the recording has %s", text)
	}
}

// exchanges is an in-memory recording.
type exchanges []replay.Exchange

func (e *exchanges) Abandon(error) { *e = nil }

func (e *exchanges) Answered(one replay.Exchange) error {
	*e = append(*e, one)
	return nil
}

// The same applies to Airlock's messages about a result that contains one.
func TestHeldCredentialsNeverEnterInMessages(t *testing.T) {
	r := redact.New()
	r.Hold("s3cr3t-token-of-crm")
	f := newFixture(t, func(o *options) { o.Redactor = r })
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[],"structuredContent":{"n":1,"s3cr3t-token-of-crm":1}}`), nil
	}
	answer := f.open().Call(t.Context(), call("strict", `{}`))
	checkAnswer(t, answer, "OutputValidationError", "[redacted:held-credential]")
	if strings.Contains(answer.Error.Message, "s3cr3t") {
		t.Errorf("the credential entered the sandbox: %s", answer.Error.Message)
	}
}

func TestHeldCredentialsNeverEnter(t *testing.T) {
	r := redact.New()
	r.Hold("s3cr3t-token-of-crm")
	f := newFixture(t, func(o *options) { o.Redactor = r })
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(
			`{"isError":true,"content":[{"type":"text","text":"bad token s3cr3t-token-of-crm for ann@corp.io"}]}`), nil
	}
	s := f.open()
	answer := s.Call(t.Context(), call("read_file", `{"path":"x"}`))
	text := string(answer.Raw) + answer.Error.Message
	if strings.Contains(text, "s3cr3t") {
		t.Errorf("the credential entered the sandbox: %s", text)
	}
	if !strings.Contains(text, "ann@corp.io") {
		t.Errorf("the data of the tool did not: %s", text)
	}
	if got := s.Close().Redactions["held-credential"]; got != 1 {
		t.Errorf("redactions: got %d, want 1", got)
	}
}
