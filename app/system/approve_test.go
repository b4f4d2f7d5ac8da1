package system

import (
	"context"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Issue 23: a grant that a person gave in a role went on after the person had lost the role.
func TestAGrantEndsWithARole(t *testing.T) {
	carl := caller.Caller{Principal: "carl", Kind: caller.Local, Session: "console", Roles: []string{"fin"},
		Scopes: []string{caller.ScopeApprove}}
	s := &System{}
	has := func(roles ...config.Role) {
		c := &config.Config{}
		c.Auth.Roles = roles
		s.Rules = rules.New(c, rules.Reading{}, rules.Options{})
	}
	desk, err := approval.OpenDesk(t.TempDir(), &approval.Options{InForce: s.mayApprove})
	if err != nil {
		t.Fatal(err)
	}
	defer desk.Close()
	question := func(id string) approval.Question {
		return approval.Question{ID: id, Asked: time.Now(), Expires: time.Now().Add(time.Minute),
			Asking:  approval.Asking{Principal: "ann", CallerKind: "user", SessionID: "ses_1", RunID: id},
			Subject: approval.Subject{ServerID: "bank", ToolName: "pay"},
			Grounds: approval.Grounds{Risk: "write", Approve: []string{"fin"}}}
	}
	asks := func(id string) (isGranted bool) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		v, err := desk.Ask(ctx, question(id))
		return err == nil && v.ByGrant
	}
	has(config.Role{Name: "fin", Principals: []string{"carl"}})
	opened := make(chan bool, 1)
	defer desk.Subscribe(func(e approval.Event) {
		if e.Open && e.Question.ID == "apr_1" {
			opened <- true
		}
	})()
	answered := make(chan approval.Verdict, 1)
	go func() {
		v, _ := desk.Ask(t.Context(), question("apr_1"))
		answered <- v
	}()
	<-opened
	posted, _, err := desk.Find("apr_1")
	if err != nil {
		t.Fatal(err)
	}
	yes := approval.Answering(carl, posted, "test")
	yes.Digest, yes.Approve, yes.Approver = posted.Digest, true, &carl
	yes.For = approval.Extent{Reach: approval.UntilDate, Until: time.Now().Add(time.Hour)}
	if err := desk.Answer(yes); err != nil {
		t.Fatal(err)
	}
	if v := <-answered; v.Answer != approval.Yes {
		t.Fatalf("got %+v", v)
	}
	if !asks("apr_2") {
		t.Error("with the role, the grant covers no further call")
	}
	has(config.Role{Name: "fin", Principals: []string{"dora"}})
	if asks("apr_3") {
		t.Error("without the role, the grant covers a further call")
	}
}
