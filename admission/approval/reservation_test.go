package approval_test

import (
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// However many unanswered questions one account has, those of others are asked. Questions beyond
// its share wait until one is closed.
func TestNoAccountTakesAllRoomForQuestions(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir, nil)
	const each = 16
	asker := func(principal, account string) approval.Question {
		q := question()
		q.Principal, q.CallerKind, q.Account = principal, "agent", account
		return q
	}
	var asked []approval.Question
	var verdicts []<-chan approval.Verdict
	for n := range 100 {
		q := asker([]string{"agent 1", "agent 2"}[n%2], "agents of ann")
		q.Expires = time.Now().Add(time.Hour)
		asked = append(asked, q)
		verdicts = append(verdicts, ask(t, d, q))
	}
	bobs := asker("bob", "user bob")
	verdict := ask(t, d, bobs)
	if _, err := approval.Reply(dir, posted(t, dir, bobs.ID), approval.Decision{}); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.No {
		t.Errorf("got %+v for bob's question, want that it is asked and answered", v)
	}
	open := map[string]bool{}
	testenv.Await(t, "all questions were open", func() bool {
		list, err := approval.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > each {
			t.Fatalf("%d questions of one account are open, want at most %d", len(list), each)
		}
		for _, p := range list {
			if open[p.ID] {
				continue
			}
			open[p.ID] = true
			if _, err := approval.Reply(dir, p, approval.Decision{}); err != nil {
				t.Fatal(err)
			}
		}
		return len(open) == len(asked)
	})
	for i, verdict := range verdicts {
		if v := <-verdict; v.Answer != approval.No {
			t.Errorf("question %d: got %+v, want that it was answered", i, v)
		}
	}
}
