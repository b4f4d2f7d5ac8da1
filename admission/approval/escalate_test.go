package approval_test

import (
	"errors"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
)

// Issue 31: after a time, a role may approve in place of the owner, and only in place of the owner.
func TestEscalation(t *testing.T) {
	bob := approval.Person{Name: "bob", Roles: []string{"oncall"}}
	for name, test := range map[string]struct {
		asks   []string
		people int
		want   error // for bob
		open   bool  // after his answer
	}{
		"the owner":                  {[]string{"owner"}, 1, nil, false},
		"the owner and another":      {[]string{"owner"}, 2, nil, true},
		"the owner and another role": {[]string{"finance", "owner"}, 1, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			escalated := make(chan approval.Event, 1)
			d := openDesk(t, t.TempDir(), &approval.Options{
				Escalation: approval.Escalation{After: time.Millisecond, Role: "oncall"}})
			defer d.Subscribe(func(e approval.Event) {
				if e.Escalated != "" {
					escalated <- e
				}
			})()
			q := question()
			q.Grounds.Approve, q.People = test.asks, test.people
			verdict := ask(t, d, q)
			if e := <-escalated; e.Escalated != "oncall" || e.Question.ID != q.ID || !e.Open {
				t.Errorf("got %+v", e)
			}
			p, asking, err := d.Find(q.ID)
			if err != nil || p.Escalated != "oncall" || asking.Roles == "" {
				t.Fatalf("got %+v, %+v, %v", p, asking, err)
			}
			err = d.Answer(approval.Response{ID: q.ID, Digest: p.Digest, Approve: true, By: "bob", Person: bob})
			if !errors.Is(err, test.want) || len(d.Posted()) == 1 != test.open {
				t.Errorf("got %v, %d open questions", err, len(d.Posted()))
			}
			if test.open {
				again := d.Answer(approval.Response{ID: q.ID, Digest: p.Digest, Approve: true, By: "bob", Person: bob})
				if !errors.Is(again, approval.ErrAgreed) {
					t.Errorf("bob again: %v", again)
				}
				if err := d.Answer(approval.Response{ID: q.ID, Digest: p.Digest}); err != nil {
					t.Error(err)
				}
			}
			<-verdict
		})
	}
}

// Before the time, for a role, and in quiet hours, nothing is escalated.
func TestNotEscalated(t *testing.T) {
	now := time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC)
	morning := now.Add(8 * time.Hour)
	awake := func(t time.Time) time.Time {
		if t.Before(morning) {
			return morning
		}
		return t
	}
	for name, test := range map[string]struct {
		e    approval.Escalation
		asks []string
		want time.Duration
		ok   bool
	}{
		"nobody":      {approval.Escalation{}, []string{"owner"}, 0, false},
		"a role":      {approval.Escalation{After: time.Minute, Role: "oncall"}, []string{"finance"}, 0, false},
		"the owner":   {approval.Escalation{After: time.Minute, Role: "oncall"}, nil, time.Minute, true},
		"quiet hours": {approval.Escalation{time.Minute, "oncall", awake}, nil, 8*time.Hour + time.Minute, true},
	} {
		q := question()
		q.Grounds.Approve = test.asks
		if got, ok := test.e.Wait(q, now); got != test.want || ok != test.ok {
			t.Errorf("%s: got %v, %t, want %v, %t", name, got, ok, test.want, test.ok)
		}
	}
	// The role may not answer before.
	d := openDesk(t, t.TempDir(), &approval.Options{
		Escalation: approval.Escalation{After: time.Hour, Role: "oncall"}})
	q := question()
	verdict := ask(t, d, q)
	p := posted(t, d.Dir(), q.ID)
	if err := d.Answer(approval.Response{ID: q.ID, Digest: p.Digest, Approve: true,
		Person: approval.Person{Name: "bob", Roles: []string{"oncall"}}}); !errors.Is(err, approval.ErrNotAsked) {
		t.Errorf("got %v, want %v", err, approval.ErrNotAsked)
	}
	if err := d.Answer(approval.Response{ID: q.ID, Digest: p.Digest}); err != nil {
		t.Error(err)
	}
	<-verdict
}
