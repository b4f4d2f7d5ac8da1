package admission_test

import (
	"context"
	"testing"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Requests beyond the rate of a principal have no bound, so their records have one: an account has
// 500 of them a minute, and further ones are counted by agent and reason (issue 23). No request is
// missing in the log, and decisions about acts have separate records.
func TestRecordsOfRequestsBeyondTheRateAreBounded(t *testing.T) {
	const requests = 2000
	limiter := &switched{}
	o := newOffice(t, func(opts *options) { opts.Limiter = limiter })
	flooding, _ := o.register("trusted", "")
	other, _ := o.register("trusted", "")
	limiter.failure = admission.ErrTooOften
	for range requests {
		o.try(flooding, action("calculate", "1"), step(1))
	}
	limiter.failure = nil
	if got := o.try(other, action("calculate", "1"), step(1)); got != "APPROVED" {
		t.Errorf("another agent of the account: got %s", got)
	}
	if got := o.try(flooding, action("calculate", "1"), step(1)); got != "APPROVED" {
		t.Errorf("a request after the flood: got %s", got)
	}
	limiter.failure = admission.ErrTooOften
	o.try(other, action("calculate", "2"), step(2))
	o.restart() // records what is still counted
	limiter.failure = nil

	single, counted, approved := 0, 0, 0
	if err := audit.Tail(t.Context(), o.logDir, 10*requests, false, func(r audit.Record) error {
		switch {
		case r.Kind != audit.KindAction:
		case r.Decision == admission.Approved:
			approved++
		case r.Calls > 0 && r.Decision == admission.Denied && r.ErrorType == admission.CodeRate:
			counted += r.Calls
		case r.ErrorType == admission.CodeRate:
			single++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if single+counted != requests+1 || single < 500 || single > requests-500 || approved != 2 {
		t.Errorf("got %d single records, %d counted requests, %d approved; want %d refused and 2 approved", single,
			counted, approved, requests+1)
	}
}

// switched is a limiter with a failure that can change.
type switched struct{ failure error }

func (s *switched) Allow(context.Context, string) error { return s.failure }

// An account with too many refused calls waits for its turn; other accounts do not.
func TestCallsWaitAfterTooManyRefusals(t *testing.T) {
	o := newOffice(t)
	ended, end := context.WithCancel(t.Context())
	end()
	ann := caller.Caller{Principal: "ann", Kind: caller.User}
	for n := 0; o.acts.AwaitTurn(ended, ann) == nil; n++ {
		if n == 5000 {
			t.Fatal("calls do not wait after 5,000 refusals")
		}
		o.acts.CountRefusal(ann.Account())
	}
	if err := o.acts.AwaitTurn(ended, caller.Caller{Principal: "bob", Kind: caller.User}); err != nil {
		t.Errorf("another account waits: %v", err)
	}
}
