package code

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// Subscriptions are found by host, by session and by resource, in whatever order they begin and end.
func TestSubscriptionsAreFoundByTheirResource(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	hosts := []*mcp.ServerSession{{}, {}, {}, {}}
	want := map[subscription]subscribed{}
	var all subscriptions
	for range 5000 {
		host, n := random.IntN(len(hosts)), random.IntN(6)
		one := subscription{hosts[host], fmt.Sprint("shown://", n)}
		who := caller.Caller{Session: fmt.Sprint("ses_", host/2)} // two hosts share one
		to := subscribed{who: who, what: resource{"server", fmt.Sprint("doc://", n/2)}}
		_, has := want[one]
		switch random.IntN(8) {
		case 0:
			removed := all.end(who.Session)
			before := len(want)
			for one, to := range want {
				if to.who.Session == who.Session {
					delete(want, one)
				}
			}
			if len(removed) != before-len(want) {
				t.Fatalf("the end of a session removed %d, want %d", len(removed), before-len(want))
			}
		case 1, 2, 3:
			if removed := all.remove(one); (len(removed) == 1) != has {
				t.Fatalf("removed %v, want %t", removed, has)
			}
			delete(want, one)
		default:
			if added := all.add(one, to); added == has {
				t.Fatalf("added %t, want %t", added, !has)
			}
			if !has {
				want[one] = to
			}
		}
		var uris []string
		for one, held := range want {
			if held.what == to.what && !slices.Contains(uris, one.uri) {
				uris = append(uris, one.uri)
			}
		}
		got := all.urisOf(to.what)
		slices.Sort(got)
		slices.Sort(uris)
		if !slices.Equal(got, uris) || len(all.open) != len(want) {
			t.Fatalf("got %v and %d subscriptions, want %v and %d", got, len(all.open), uris, len(want))
		}
	}
	for host := range hosts {
		all.end(fmt.Sprint("ses_", host))
	}
	if len(all.open)+len(all.sessions)+len(all.shown) > 0 {
		t.Errorf("%v is left", all.shown)
	}
}
