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
		all, err := here.Remotes(ctx, "", -1)
		if err != nil || len(all) != 1 || all[0].Agent != "far" {
			t.Fatalf("got %+v %v, want the one pinned agent", all, err)
		}
		return all[0]
	}
	if got := list(); got.Level != iatp.Standard || got.Suspended {
		t.Errorf("pinned: got %+v", got)
	}
	level := func(level iatp.Level) iatp.RemoteChange { return iatp.RemoteChange{Level: &level} }
	suspend := func(is bool) iatp.RemoteChange { return iatp.RemoteChange{Suspended: &is} }
	if got, err := here.ChangeRemote(ctx, "far", level("verified_partner"), "ann"); err != nil || got != list() ||
		got.Level != "verified_partner" {
		t.Errorf("another level: got %+v %v", got, err)
	}
	before := verify(t, here, iatp.Query{Agent: "far", Level: "any"})
	if _, err := here.Slash(ctx, iatp.Slash{Agent: "far", Reason: "r", Severity: "medium", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, here, iatp.Query{Agent: "far", Level: "any"}); got.Score >= before.Score {
		t.Errorf("after a slash: got the score %v, and %v before", got.Score, before.Score)
	}
	if _, err := here.ChangeRemote(ctx, "far", suspend(true), "ann"); err != nil || !list().Suspended {
		t.Errorf("suspended: got %+v %v", list(), err)
	}
	if got := verify(t, here, iatp.Query{Agent: "far", Level: "any"}); got.Verified ||
		!strings.Contains(got.Error, "suspended") {
		t.Errorf("suspended: got %+v, want that it is not verified", got)
	}
	if _, err := here.ChangeRemote(ctx, "far", suspend(false), "ann"); err != nil ||
		!verify(t, here, iatp.Query{Agent: "far", Level: "any"}).Verified {
		t.Errorf("resumed: got %+v %v, want that it is verified", list(), err)
	}
	slashed := list().Reputation
	if err := here.Unpin(ctx, "far", "ann"); err != nil ||
		verify(t, here, iatp.Query{Agent: "far", Level: "any"}).Verified {
		t.Errorf("unpinned: got %v, want that it is unknown", err)
	}
	here.register("near", agents.Trusted)
	change := func(agent string, c iatp.RemoteChange) error {
		_, err := here.ChangeRemote(ctx, agent, c, "ann")
		return err
	}
	for name, err := range map[string]error{
		"unpinned":        change("far", suspend(true)),
		"registered here": here.Unpin(ctx, "near", "ann"),
		"never pinned":    change("none", level(iatp.Standard)),
	} {
		if !errors.Is(err, iatp.ErrNotPinned) {
			t.Errorf("%s: got %v, want ErrNotPinned", name, err)
		}
	}
	var no *iatp.Refusal
	for name, c := range map[string]iatp.RemoteChange{"no level": level("best"), "no change": {}} {
		if err := change("far", c); !errors.As(err, &no) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	if _, err := here.Pin(ctx, offer, iatp.Standard, "ann"); err != nil || list().Reputation != slashed {
		t.Errorf("pinned again: got %+v %v, want its former reputation", list(), err)
	}
}
