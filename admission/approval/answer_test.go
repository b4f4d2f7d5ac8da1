package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
)

// An answer given inside the process counts once, for the question that was shown.
func TestAnswersFromWithin(t *testing.T) {
	d := openDesk(t, t.TempDir(), nil)
	q := question()
	open := make(chan struct{})
	defer d.Subscribe(func(e approval.Event) {
		if e.Open {
			close(open)
		}
	})()
	verdict := make(chan approval.Verdict, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		v, _ := d.Ask(ctx, q) // an error ends the test
		verdict <- v
	}()
	<-open
	posted, asking, err := d.Find(q.ID)
	if err != nil || asking != q.Asking || posted.Digest != d.Posted()[0].Digest {
		t.Fatalf("got %+v, %+v, %v", posted, asking, err)
	}
	if err := d.Answer(approval.Response{ID: q.ID, Digest: "sha256:other", Approve: true}); !errors.Is(
		err, approval.ErrChanged) {
		t.Errorf("another digest: got %v, want %v", err, approval.ErrChanged)
	}
	if err := d.Answer(approval.Response{ID: "apr_none", Digest: posted.Digest}); !errors.Is(err, approval.ErrClosed) {
		t.Errorf("another question: got %v, want %v", err, approval.ErrClosed)
	}
	r := approval.Response{ID: q.ID, Digest: posted.Digest, By: "ann, console",
		Reason: strings.Repeat("why\u202e", 1000)}
	if err := d.Answer(r); err != nil {
		t.Fatal(err)
	}
	if v := <-verdict; v.Answer != approval.No || v.By != "ann, console" ||
		!strings.HasPrefix(v.Reason, `why\u{202e}`) || len(v.Reason) > 600 {
		t.Errorf("got %+v", v)
	}
	if err := d.Answer(r); !errors.Is(err, approval.ErrClosed) ||
		!strings.Contains(err.Error(), "denied by ann, console") {
		t.Errorf("a second answer: got %v, want who was faster", err)
	}
	if len(d.Posted()) != 0 {
		t.Errorf("got %v, want no open question", d.Posted())
	}
}

func TestChanges(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"path":"/a","oldText":"x","newText":"y"}`:                     "[{ x y}]",
		`{"edits":[{"old_string":"x","new_string":"y"},{"a":1}]}`:       "[{edits[0] x y}]",
		`{"a":{"b":{"Before":"1","After":"2"}}}`:                        "[{a.b 1 2}]",
		`{"search":"x","replace":"y","list":[[{"old":"1","new":"2"}]]}`: "[{ x y} {list[0][0] 1 2}]",
		`{"old":1,"new":2}`: "[]",
		`{"oldText":"x"}`:   "[]",
		`"text"`:            "[]",
		`{`:                 "[]",
		strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000):                         "[]",
		`[` + strings.Repeat(`{"old":"","new":""},`, 30) + `{}]`:                      "20",
		strings.Repeat(`{"a":`, 50) + `{"old":"","new":""}` + strings.Repeat(`}`, 50): "[]",
	} {
		found := approval.Changes(json.RawMessage(arguments))
		if got := fmt.Sprint(found); got != want && fmt.Sprint(len(found)) != want {
			t.Errorf("%.60s: got %s, want %s", arguments, got, want)
		}
	}
}
