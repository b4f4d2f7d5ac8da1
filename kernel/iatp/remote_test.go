package iatp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// A pinned agent can be listed, re-leveled, suspended and unpinned, and its reputation
// counts also if its manifest earns every bonus (issue 24).
func TestRemoteAgents(t *testing.T) {
	there, here := newWorld(t), newWorld(t)
	ctx := t.Context()
	there.register("far", agents.Trusted)
	if err := there.SetManifest(ctx, iatp.Manifest{Agent: "far", Retention: "ephemeral", Reversibility: "full"}, "",
		"bob"); err != nil {
		t.Fatal(err)
	}
	offer, err := there.Offer(ctx, "far")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Pin(ctx, offer, iatp.Standard, "ann"); err != nil {
		t.Fatal(err)
	}
	list := func() iatp.Remote {
		t.Helper()
		all, err := here.Remotes(ctx)
		if err != nil || len(all) != 1 || all[0].Agent != "far" {
			t.Fatalf("got %+v %v, want the one pinned agent", all, err)
		}
		return all[0]
	}
	if got := list(); got.Level != iatp.Standard || got.Suspended {
		t.Errorf("pinned: got %+v", got)
	}
	if err := here.SetLevel(ctx, "far", "verified_partner", "ann"); err != nil || list().Level != "verified_partner" {
		t.Errorf("another level: got %+v %v", list(), err)
	}
	before := verify(t, here, iatp.Query{Agent: "far", Level: "any"})
	if _, err := here.Slash(ctx, iatp.Slash{Agent: "far", Reason: "r", Severity: "medium", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, here, iatp.Query{Agent: "far", Level: "any"}); got.Score >= before.Score {
		t.Errorf("after a slash: got the score %v, and %v before", got.Score, before.Score)
	}
	if err := here.Suspend(ctx, "far", "ann"); err != nil || !list().Suspended {
		t.Errorf("suspended: got %+v %v", list(), err)
	}
	if got := verify(t, here, iatp.Query{Agent: "far", Level: "any"}); got.Verified ||
		!strings.Contains(got.Error, "suspended") {
		t.Errorf("suspended: got %+v, want that it is not verified", got)
	}
	if err := here.Resume(ctx, "far", "ann"); err != nil ||
		!verify(t, here, iatp.Query{Agent: "far", Level: "any"}).Verified {
		t.Errorf("resumed: got %+v %v, want that it is verified", list(), err)
	}
	slashed := list().Reputation
	if err := here.Unpin(ctx, "far", "ann"); err != nil ||
		verify(t, here, iatp.Query{Agent: "far", Level: "any"}).Verified {
		t.Errorf("unpinned: got %v, want that it is unknown", err)
	}
	var no *iatp.Refusal
	here.register("near", agents.Trusted)
	for name, err := range map[string]error{
		"unpinned":        here.Suspend(ctx, "far", "ann"),
		"registered here": here.Unpin(ctx, "near", "ann"),
		"never pinned":    here.SetLevel(ctx, "none", iatp.Standard, "ann"),
		"no level":        here.SetLevel(ctx, "far", "best", "ann"),
	} {
		if !errors.As(err, &no) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	if _, err := here.Pin(ctx, offer, iatp.Standard, "ann"); err != nil || list().Reputation != slashed {
		t.Errorf("pinned again: got %+v %v, want its former reputation", list(), err)
	}
}
