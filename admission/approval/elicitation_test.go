package approval_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// asked returns a question of a server.
func asked(needsValues bool) approval.Question {
	q := question()
	q.Arguments = json.RawMessage(`{"message":"Where to?"}`)
	q.Elicitation = &approval.Elicitation{Schema: json.RawMessage(`{"type":"object"}`), NeedsValues: needsValues}
	return q
}

// channel is a host whose person always gives the same answer.
type channel struct {
	verdict approval.Verdict
	err     error
}

func (c channel) Ask(context.Context, approval.Question) (approval.Verdict, error) {
	return c.verdict, c.err
}

func TestAFormThatNoOneCanFillInIsRefusedAtOnce(t *testing.T) {
	desk := openDesk(t, t.TempDir(), nil)
	if v, err := desk.Ask(t.Context(), asked(true)); err != nil || v.Answer != approval.Unreachable {
		t.Errorf("without a host: got %v, %v", v, err)
	}
	unregister := desk.Register("ses_1", channel{err: context.DeadlineExceeded})
	if v, err := desk.Ask(t.Context(), asked(true)); err != nil || v.Answer != approval.Unreachable {
		t.Errorf("with a host that cannot ask: got %v, %v", v, err)
	}
	unregister()
	desk.Register("ses_1", channel{verdict: approval.Verdict{Answer: approval.Yes, Content: secret.New(`{"a":1}`)}})
	if v, err := desk.Ask(t.Context(), asked(true)); err != nil || v.Answer != approval.Yes ||
		v.Content.Reveal() != `{"a":1}` {
		t.Errorf("with one that can: got %v, %v", v, err)
	}
}

func TestAServersQuestionAtTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	desk := openDesk(t, dir, nil)
	simple := asked(false)
	verdict := ask(t, desk, simple)
	if _, err := approval.Reply(dir, posted(t, dir, simple.ID),
		approval.Decision{Approve: true, For: approval.Extent{Reach: approval.ThisRun}}); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.Yes || v.For.Reach == approval.ThisRun {
		t.Errorf("got %v, want a yes to this question alone", v)
	}
	// A yes does not extend to another question, and neither does a yes for the run about a call.
	for _, q := range []approval.Question{asked(false), question()} {
		verdict := ask(t, desk, q)
		p := posted(t, dir, q.ID)
		if _, err := approval.Reply(dir, p,
			approval.Decision{Approve: true, For: approval.Extent{Reach: approval.ThisRun}}); err != nil {
			t.Fatal(err)
		}
		if v := <-verdict; v.ByGrant {
			t.Errorf("got %v, want an answer of its own", v)
		}
	}
	again := asked(false)
	verdict = ask(t, desk, again)
	p := posted(t, dir, again.ID)
	if _, err := approval.Reply(dir, p, approval.Decision{}); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.No || v.ByGrant {
		t.Errorf("after a grant for the run: got %v, want the person's own no", v)
	}
}

func TestAFormIsNotFilledInAtTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	desk := openDesk(t, dir, nil)
	waits := make(chan struct{})
	desk.Register("ses_1", patient{waits})
	q := asked(true)
	verdict := ask(t, desk, q)
	if _, err := approval.Reply(dir, posted(t, dir, q.ID), approval.Decision{Approve: true}); err == nil ||
		!strings.Contains(err.Error(), "filled in") {
		t.Errorf("yes: got %v", err)
	}
	if _, err := approval.Reply(dir, posted(t, dir, q.ID), approval.Decision{}); err != nil {
		t.Errorf("no: got %v", err)
	}
	if v := <-verdict; v.Answer != approval.No {
		t.Errorf("got %v, want no", v)
	}
}

// patient is a host whose person does not answer.
type patient struct{ until chan struct{} }

func (p patient) Ask(ctx context.Context, _ approval.Question) (approval.Verdict, error) {
	select {
	case <-p.until:
	case <-ctx.Done():
	}
	return approval.Verdict{}, ctx.Err()
}

func TestAServersQuestionSaysWhoseItIs(t *testing.T) {
	q := asked(true)
	q.Elicitation.URL = "https://pay.example"
	text := approval.Text(q)
	for _, want := range []string{"The server files asks you", "Give it no passwords", "open it yourself",
		"the server's question, complete", "Where to?"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s\nwant %q in it", text, want)
		}
	}
}
