package approval_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
)

// Of two people who answer at the same time, the first answer counts and the other person is
// notified.
func TestOneOfTwoAnswersCounts(t *testing.T) {
	dir := t.TempDir()
	q := question()
	verdict := ask(t, openDesk(t, dir, nil), q)
	p := posted(t, dir, q.ID)
	var heard atomic.Int32
	var people sync.WaitGroup
	for i := range 8 {
		people.Go(func() {
			_, err := approval.Reply(dir, p, approval.Decision{Approve: i%2 == 0})
			if err == nil {
				heard.Add(1)
			} else if !errors.Is(err, approval.ErrClosed) || !strings.Contains(err.Error(), "answered already: ") {
				t.Errorf("got %v, want nil or that another was faster", err)
			}
		})
	}
	people.Wait()
	<-verdict
	if heard.Load() != 1 {
		t.Errorf("got %d answers taken, want 1", heard.Load())
	}
}

// Pending calls of one tool all end with the first grant for the run. Each has a separate verdict
// that names its origin.
func TestAGrantEndsQuestionsThatAreOpen(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir, nil)
	first, second, other := question(), question(), question()
	second.Arguments = json.RawMessage(`{"path":"/srv/b"}`)
	other.ToolName = "format_disk"
	one, two, three := ask(t, d, first), ask(t, d, second), ask(t, d, other)
	p := posted(t, dir, first.ID)
	posted(t, dir, second.ID)
	last := posted(t, dir, other.ID)
	if _, err := approval.Reply(dir, p,
		approval.Decision{Approve: true, For: approval.Extent{Reach: approval.ThisRun}}); err != nil {
		t.Fatal(err)
	}
	if v := <-one; v.Answer != approval.Yes || !strings.HasSuffix(v.By, "command line") {
		t.Errorf("got %+v, want this user's yes", v)
	}
	if v := <-two; v.Answer != approval.Yes || v.By != "grant for this run" || v.For.Reach == approval.ThisRun {
		t.Errorf("got %+v, want yes by the grant, which grants no more", v)
	}
	select {
	case v := <-three:
		t.Errorf("another tool: got %+v, want it still open", v)
	default:
	}
	if _, err := approval.Reply(dir, last, approval.Decision{}); err != nil {
		t.Fatal(err)
	}
	<-three
}
