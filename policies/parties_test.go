package policies

import (
	"fmt"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/catalog"
)

// The cached parts of one request have no effect on another. Requests that differ in a single
// member get separate decisions, also after many requests and concurrently.
func TestDecisionsOnAlternatingRequests(t *testing.T) {
	yes, no := true, false
	const source = `
@id("tool") permit (principal == User::"ann", action, resource == Tool::"crm/read");
@id("server") permit (principal, action, resource in Server::"open");
@id("allowed") permit (principal, action, resource) when { resource.allowed };
@id("risk") permit (principal, action, resource) when { resource.risk == "read" };
@id("claims") forbid (principal, action, resource) when { resource.claims.openWorld || resource.claims.idempotent };
@id("flagged") forbid (principal, action, resource) when { resource.flagged };
@id("trusted") permit (principal, action, resource) when { resource.server == "trusted" && resource.name == "read" };`
	load := func() *Engine {
		e, err := Load(File{Name: "p.cedar", Source: []byte(source)})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	var requests []Request
	for _, principal := range []string{"ann", "bob"} {
		for _, server := range []string{"crm", "open", "trusted"} {
			for _, tool := range []string{"read", "write"} {
				for settings := range 16 {
					for claims := range 4 {
						r := Request{Principal: principal, Tool: catalog.Tool{ServerID: server, Name: tool}}
						r.Settings = Settings{TrustAnnotations: settings&1 > 0, Allowed: settings&2 > 0,
							Denied: settings&4 > 0}
						if settings&8 > 0 {
							r.Settings.Flags = []catalog.Flag{{}}
						}
						r.Tool.Annotations.OpenWorldHint, r.Tool.Annotations.ReadOnlyHint = &no, &yes
						if claims&1 > 0 {
							r.Tool.Annotations.OpenWorldHint = &yes
						}
						if claims&2 > 0 {
							r.Tool.Annotations.ReadOnlyHint = &no
						}
						requests = append(requests, r)
					}
				}
			}
		}
	}
	want := make([]string, len(requests))
	allowed := 0
	for i, r := range requests {
		d := load().Decide(r) // by an engine that remembers nothing
		want[i] = fmt.Sprint(d)
		if d.Allow {
			allowed++
		}
	}
	if allowed == 0 || allowed == len(requests) {
		t.Fatalf("%d of %d requests are allowed: nothing is compared", allowed, len(requests))
	}
	e := load()
	var deciding sync.WaitGroup
	for begin := range 8 {
		deciding.Go(func() {
			for n := range 2 * len(requests) {
				i := (n*7 + begin) % len(requests)
				if got := fmt.Sprint(e.Decide(requests[i])); got != want[i] {
					t.Errorf("%+v: got %s, want %s", requests[i], got, want[i])
					return
				}
			}
		})
	}
	deciding.Wait()
	for i := range 3 * maxParties {
		e.Decide(Request{Principal: fmt.Sprint(i)})
	}
	if got := len(e.parties.known); got > maxParties {
		t.Errorf("it remembers %d, want at most %d", got, maxParties)
	}
}
