package approval_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/broker/approval"
)

// A shell that the model drives is a child of the agent's host. From there a
// call can be refused, not approved.
func TestTheHostsOwnShellCannotApprove(t *testing.T) {
	stranger := exec.CommandContext(t.Context(), "cat")
	if _, err := stranger.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stranger.Wait() }) // t.Context ended it
	tests := []struct {
		name    string
		host    int
		approve bool
		want    error
	}{
		{"approving from within the host", os.Getppid(), true, approval.ErrOfHost},
		{"denying from within the host", os.Getppid(), false, nil},
		{"approving from elsewhere", stranger.Process.Pid, true, nil},
		{"the first process is everybody's ancestor", 1, true, nil},
		{"no host", 0, true, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			q := question()
			q.HostPID = 4 // what a caller says does not count
			verdict := ask(t, openDesk(t, dir, &approval.Options{Wait: true, HostPID: test.host}), q)
			p := posted(t, dir, q.ID)
			if err := approval.Reply(dir, p, test.approve, "mallory", false); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if test.want != nil {
				p.HostPID = 0 // a forged question is another one: its digest does not fit
				if err := approval.Reply(dir, approval.Posted{Question: p.Question, Digest: "sha256:0"}, true, "mallory", false); err != nil {
					t.Fatal(err)
				}
				for open := true; open; { // thrown away by the desk; then a person refuses
					open = approval.Reply(dir, p, false, "ann", false) != nil
				}
			}
			v := <-verdict
			if yes := v.Answer == approval.Yes; yes != (test.approve && test.want == nil) {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// Of two people who answer at the same time one is heard, and the other told so.
func TestOneOfTwoAnswersCounts(t *testing.T) {
	dir := t.TempDir()
	q := question()
	verdict := ask(t, openDesk(t, dir, &approval.Options{Wait: true}), q)
	p := posted(t, dir, q.ID)
	var heard atomic.Int32
	var people sync.WaitGroup
	for i := range 8 {
		people.Go(func() {
			err := approval.Reply(dir, p, i%2 == 0, "somebody", false)
			if err == nil {
				heard.Add(1)
			} else if !errors.Is(err, approval.ErrClosed) {
				t.Errorf("got %v, want nil or ErrClosed", err)
			}
		})
	}
	people.Wait()
	<-verdict
	if heard.Load() != 1 {
		t.Errorf("got %d answers taken, want 1", heard.Load())
	}
}

// Calls of one tool that were asked for together end with the first grant for the
// run; each has its own verdict, which says where it came from.
func TestAGrantEndsQuestionsThatAreOpen(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir, &approval.Options{Wait: true})
	first, second, other := question(), question(), question()
	second.Arguments = json.RawMessage(`{"path":"/srv/b"}`)
	other.ToolName = "format_disk"
	one, two, three := ask(t, d, first), ask(t, d, second), ask(t, d, other)
	p := posted(t, dir, first.ID)
	posted(t, dir, second.ID)
	last := posted(t, dir, other.ID)
	if err := approval.Reply(dir, p, true, "ann", true); err != nil {
		t.Fatal(err)
	}
	if v := <-one; v.Answer != approval.Yes || v.By != "ann" {
		t.Errorf("got %+v, want ann's yes", v)
	}
	if v := <-two; v.Answer != approval.Yes || v.By != "grant for this run" || v.ForRun {
		t.Errorf("got %+v, want yes by the grant, which grants no more", v)
	}
	select {
	case v := <-three:
		t.Errorf("another tool: got %+v, want it still open", v)
	default:
	}
	if err := approval.Reply(dir, last, false, "ann", false); err != nil {
		t.Fatal(err)
	}
	<-three
}
