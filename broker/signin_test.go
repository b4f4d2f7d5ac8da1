package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker"
	servers "github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// signedIn signs everybody in at once.
type signedIn struct{}

func (signedIn) SignIn(_ context.Context, _ caller.Caller, _ string, invite func(page, site string)) (string, error) {
	invite("http://127.0.0.1/start", "https://login.example")
	return "ann", nil
}

// hosted is an approver whose hosts all ask their people.
type hosted struct{ approver }

func (hosted) AsksHost(string) bool { return true }

// A call whose caller may no longer act when the sign-in that it needed is done is refused as each other such call.
func TestACallerWhoEndsDuringASignIn(t *testing.T) {
	for name, test := range map[string]struct {
		why            error
		kind, contains string
		calls          int
	}{
		"in force": {nil, "", "", 2},
		"revoked": {fmt.Errorf("%w: revoked", caller.ErrEnded), "PolicyDenied", "the caller's token was revoked",
			1},
		"it is not known": {errors.New("the disk is full"), "SandboxError", "could not be looked up", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(opts *options) {
				opts.Authority = &ended{why: test.why, after: 1}
				opts.SignIns = signedIn{}
				opts.Approver = hosted{approver{verdict: approval.Verdict{Answer: approval.Yes, By: "ann"}}}
			})
			f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				if len(f.upstream.calls) == 1 {
					return nil, &servers.SignInError{ServerID: "files", Why: "its user has not signed in",
						Command: "airlock login files"}
				}
				return json.RawMessage(`{"content":[]}`), nil
			}
			who := caller.Caller{Principal: "bob", Kind: caller.User, Session: "ses_1",
				Credentials: []caller.Credential{{ID: "tok_1"}}}
			calls := open(t, f.Broker, broker.Run{ID: "run_1", Caller: who}, f.snapshot, nil)
			answer := calls.Call(t.Context(), broker.Call{ServerID: "files", Name: "read_file",
				Arguments: json.RawMessage(`{"path": "a"}`)})
			got := broker.Error{}
			if answer.Error != nil {
				got = *answer.Error
			}
			if got.Type != test.kind || !strings.Contains(got.Message, test.contains) {
				t.Errorf("got %+v, want %q: %s", got, test.kind, test.contains)
			}
			if len(f.upstream.calls) != test.calls {
				t.Errorf("%d calls at the server, want %d", len(f.upstream.calls), test.calls)
			}
		})
	}
}
