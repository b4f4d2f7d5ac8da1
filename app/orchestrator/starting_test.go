package orchestrator

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/runner"
)

// arriving has a server more after Await.
type arriving struct {
	before, after  *catalog.Snapshot
	awaited, never []string // the servers that were waited for; those that never come
}

func (a *arriving) Snapshot(caller.Caller) *catalog.Snapshot {
	if a.awaited != nil {
		return a.after
	}
	return a.before
}

func (a *arriving) Shared() *catalog.Snapshot { return a.Snapshot(caller.Caller{}) }

func (a *arriving) Await(ctx context.Context, ids ...string) error {
	a.awaited = ids
	if slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(a.never, id) }) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func TestRunWaitsOnlyForServersThatItNames(t *testing.T) {
	made := func(servers ...catalog.Server) *catalog.Snapshot {
		s, err := catalog.NewSnapshot(servers)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	starting := func(id string) catalog.Server { return catalog.Server{ID: id, Problem: catalog.StillStarting} }
	broken := catalog.Server{ID: "broken", Problem: "it exited with status 1"}
	before := made(starting("my-crm"), starting("hung"), broken, catalog.Server{ID: "files"})
	after := made(catalog.Server{ID: "my-crm"}, starting("hung"), broken, catalog.Server{ID: "files"})
	tests := []struct {
		name, code string
		want       []string
	}{
		{"a server that is there", "from servers import files", nil},
		{"one that has failed", "from servers import broken", nil},
		{"one by its module", "from servers.my_crm import list_contacts", []string{"my-crm"}},
		{"one by its ID", `await client.call("my-crm", "list", {})`, []string{"my-crm"}},
		{"one that hangs", "from servers import hung", []string{"hung"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			source := &arriving{before: before, after: after, never: []string{"hung"}}
			o := &Orchestrator{
				parts: Parts{Snapshots: source, Logger: slog.New(slog.DiscardHandler)},
				opts:  Options{Limits: runner.Limits{Timeout: 20 * time.Millisecond}},
			}
			got := o.snapshotFor(t.Context(), Request{Code: []byte(test.code)})
			if !slices.Equal(source.awaited, test.want) {
				t.Errorf("got %q waited for, want %q", source.awaited, test.want)
			}
			if want := source.Snapshot(caller.Caller{}); got != want {
				t.Errorf("got an old snapshot")
			}
		})
	}
}
