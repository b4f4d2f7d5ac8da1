package admission_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
)

// answerer answers a question when the test sends a verdict.
type answerer chan approval.Verdict

func (a answerer) Ask(ctx context.Context, _ approval.Question) (approval.Verdict, error) {
	select {
	case v := <-a:
		return v, nil
	case <-ctx.Done():
		return approval.Verdict{}, ctx.Err()
	}
}

// Issue 24: three agents fill their owner's share of open questions. Each PENDING decision has a
// question that can be answered. Beyond the share, a request is refused and can be retried, even if
// the agent itself has few open questions. Agents of another owner are not affected.
func TestPendingMeansThatTheQuestionExists(t *testing.T) {
	dir := t.TempDir()
	desk, err := approval.OpenDesk(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer desk.Close()
	o := newOffice(t, func(opts *options) { opts.Desk, opts.Limiter, opts.Now = desk, nil, nil })
	answers := make(answerer)
	desk.Register("conv_1", answers)
	var all []agents.Agent
	for range 3 {
		a, _ := o.register("supervised", "")
		all = append(all, a)
	}
	open := 0
	var refused agents.Agent
	for n := range 24 {
		a := all[n%len(all)]
		d := o.verify(a, action("send_email", fmt.Sprint(n)), step(n+1))
		switch {
		case d.Decision == admission.Pending:
			open++
			if _, err := approval.Find(dir, d.ApprovalID); err != nil {
				t.Fatalf("question %d cannot be answered: %v", n, err)
			}
		case d.Decision != admission.Denied || d.Error.Code != admission.CodeManyOpen || !d.Error.Retryable ||
			d.ApprovalID != "":
			t.Fatalf("action %d: %+v %+v", n, d, d.Error)
		default:
			refused = a
		}
	}
	if open != 16 || desk.Open() != 16 {
		t.Errorf("%d PENDING and %d open questions, want 16", open, desk.Open())
	}
	r, err := o.tool(refused.ID, "drop_table", nil)
	if err != nil || r.Approved || r.ApprovalID != "" || !r.Retryable {
		t.Errorf("a dangerous tool: %+v, %v", r, err)
	}
	registration, err := agents.ParseRegistration(
		[]byte(`{"name": "other", "type": "supervised", "principal_id": "user_1"}`))
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := o.Register(t.Context(), registration, "bob")
	if err != nil {
		t.Fatal(err)
	}
	if d := o.verify(other, action("send_email", "x"), step(1)); d.Decision != admission.Pending {
		t.Errorf("an agent of another owner: %+v", d)
	}
	answers <- approval.Verdict{Answer: approval.No, By: "ann"}
	d := o.verify(refused, action("send_email", "again"), step(100))
	for d.Decision == admission.Denied && d.Error.Retryable {
		d = o.verify(refused, action("send_email", "again"), step(100))
	}
	if d.Decision != admission.Pending {
		t.Errorf("after an answer: %+v", d)
	}
}

// If no person can be asked, nothing is pending.
func TestWithoutADeskNothingIsPending(t *testing.T) {
	o := newOffice(t, func(opts *options) { opts.Desk = nil })
	a, _ := o.register("supervised", "")
	if got := o.try(a, action("send_email", "x"), step(1)); got != "DENIED "+admission.CodeNobody {
		t.Error(got)
	}
}
