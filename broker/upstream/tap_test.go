package upstream

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A server that asks and does not read the answers cannot pile up work.
func TestTapBoundsRequestsOfTheServer(t *testing.T) {
	tap := newTap()
	ask := func(id float64) bool {
		t.Helper()
		parsed, err := jsonrpc.MakeID(id)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := tap.incoming(&jsonrpc.Request{ID: parsed, Method: "ping"}, jsonrpc.ID{})
		return ok
	}
	for i := range maxAsked {
		if !ask(float64(i)) {
			t.Fatalf("got request %d dropped, want %d allowed", i, maxAsked)
		}
	}
	if ask(1000) {
		t.Errorf("got request %d allowed", maxAsked+1)
	}
	if _, ok := tap.incoming(&jsonrpc.Request{Method: "notifications/progress"}, jsonrpc.ID{}); !ok {
		t.Errorf("got a notification dropped")
	}
	tap.written(&jsonrpc.Response{})
	if !ask(1001) {
		t.Errorf("got a request dropped after an answer went out")
	}
}

func TestTapForgetsWhoDoesNotWait(t *testing.T) {
	tap, e := newTap(), newExchange(nil, nil)
	id, err := jsonrpc.MakeID(float64(1))
	if err != nil {
		t.Fatal(err)
	}
	tap.outgoing(withExchange(t.Context(), e), &jsonrpc.Request{ID: id, Method: methodCallTool})
	tap.forget(e)
	tap.incoming(&jsonrpc.Response{ID: id, Result: []byte("{}")}, jsonrpc.ID{})
	if got := e.soFar(); got.result != nil || len(tap.waiting) != 0 {
		t.Errorf("got %+v and %d waiting, want nothing", got, len(tap.waiting))
	}
}
