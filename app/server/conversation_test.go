package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// The sessions and large messages of two agents are counted for their common account. Those of a
// caller that is not an agent are counted for the caller.
func TestRequestsCountForAnAccount(t *testing.T) {
	of := func(who caller.Caller) (about conversation) {
		identify := func(*http.Request) (caller.Caller, error) { return who, nil }
		next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { about = conversationOf(r) })
		authenticated(identify, nil, next).ServeHTTP(
			httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil))
		return about
	}
	one := of(caller.Caller{Principal: "agt_1", Kind: caller.Agent, Session: "agt_1", Registrar: "ann"})
	two := of(caller.Caller{Principal: "agt_2", Kind: caller.Agent, Session: "agt_2", Registrar: "ann"})
	if one.account != "agents of ann" || one.account != two.account || one.identity == two.identity {
		t.Errorf("got %+v and %+v, want two identities of one account", one, two)
	}
	ann := of(caller.Caller{Principal: "ann", Kind: caller.User, Session: "s"})
	bob := of(caller.Caller{Principal: "bob", Kind: caller.User, Session: "s"})
	if ann.account == "" || ann.account == bob.account {
		t.Errorf("got %+v and %+v, want two accounts", ann, bob)
	}
}
