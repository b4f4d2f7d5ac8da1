package iatp_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// T41: a remote agent is known by its pinned manifest, at the operator's level.
func TestPinningAnAgentElsewhere(t *testing.T) {
	there, here := newWorld(t), newWorld(t)
	ctx := t.Context()
	there.register("far", agents.Trusted)
	if err := there.SetManifest(ctx, iatp.Manifest{Agent: "far", Scopes: []string{"repo:read"}, Retention: "ephemeral",
		Reversibility: "none"}, "", "bob"); err != nil {
		t.Fatal(err)
	}
	offer, err := there.Offer(ctx, "far")
	if err != nil {
		t.Fatal(err)
	}
	if got := verify(t, here, iatp.Query{Agent: "far", Level: "any"}); got.Verified {
		t.Error("an agent is trusted before it is known")
	}
	id, err := here.Pin(ctx, offer, iatp.Standard, "ann")
	if err != nil || id != "far" {
		t.Fatal(id, err)
	}
	signed := there.sign(t, "far", iatp.Content{Text: "hello"}).Envelope
	got := verify(t, here, iatp.Query{Agent: "far", Scopes: []string{"repo:read"}, Classification: "pii",
		Attestation: &signed})
	if !got.Verified || got.Level != iatp.Standard || got.Score != 6 {
		t.Errorf("%+v, want the operator's level, not the agent's own", got)
	}
	if got := verify(t, here, iatp.Query{Agent: "far", Attestation: &signed}); got.Verified ||
		!strings.Contains(got.Error, "used before") {
		t.Errorf("replayed: %+v", got)
	}
	if _, err := here.Pin(ctx, offer, iatp.Standard, "ann"); !errors.Is(err, iatp.ErrReplayed) {
		t.Errorf("an old manifest is pinned again: %v", err)
	}
	there.clock.Advance(time.Minute)
	here.clock.Advance(time.Minute)
	if err := there.SetManifest(ctx, iatp.Manifest{Agent: "far", Retention: "permanent", Reversibility: "none"}, "",
		"bob"); err != nil {
		t.Fatal(err)
	}
	later, err := there.Offer(ctx, "far")
	if err != nil {
		t.Fatal(err)
	}
	impostor := newWorld(t)
	impostor.clock.Advance(2 * time.Minute)
	here.clock.Advance(time.Minute)
	impostor.register("far", agents.Trusted)
	forged, err := impostor.Offer(ctx, "far")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Pin(ctx, forged, iatp.Standard, "ann"); !errors.Is(err, iatp.ErrForged) {
		t.Errorf("another key takes over: %v", err)
	}
	if _, err := here.Pin(ctx, later, iatp.Trusted, "ann"); err != nil {
		t.Error(err)
	}
	here.register("near", agents.Supervised)
	near := newWorld(t)
	near.register("near", agents.Supervised)
	of, err := near.Offer(ctx, "near")
	if err != nil {
		t.Fatal(err)
	}
	var no *iatp.Refusal
	if _, err := here.Pin(ctx, of, iatp.Standard, "ann"); !errors.As(err, &no) {
		t.Errorf("a registered agent is taken over: %v", err)
	}
	if _, err := here.Sign(ctx, "far", iatp.Content{Text: "x"}); !errors.As(err, &no) {
		t.Errorf("we sign for an agent elsewhere: %v", err)
	}
}

func TestPinsThatAreRefused(t *testing.T) {
	there, here := newWorld(t), newWorld(t)
	there.register("far", agents.Trusted)
	good, err := there.Offer(t.Context(), "far")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*iatp.Pinned){
		"no keys":       func(p *iatp.Pinned) { p.Keys = nil },
		"another's key": func(p *iatp.Pinned) { p.Keys[0].Agent = "b" },
		"wrong kid":     func(p *iatp.Pinned) { p.Keys[0].KeyID = "x" },
		"not Ed25519":   func(p *iatp.Pinned) { p.Keys[0].KeyType = "RSA" },
		"no end":        func(p *iatp.Pinned) { p.Keys[0].Expires = 0 },
		"short":         func(p *iatp.Pinned) { p.Keys[0].X = "AAAA" },
		"no manifest":   func(p *iatp.Pinned) { p.Manifest = iatp.Envelope{} },
		"changed": func(p *iatp.Pinned) {
			p.Manifest.Payload = bytes.Replace(p.Manifest.Payload, []byte("none"), []byte("full"), 1)
		},
	} {
		bad := good
		bad.Keys = slices.Clone(good.Keys)
		change(&bad)
		if _, err := here.Pin(t.Context(), bad, iatp.Standard, "ann"); err == nil {
			t.Errorf("%s is pinned", name)
		}
	}
	if _, err := here.Pin(t.Context(), good, "best", "ann"); err == nil {
		t.Error("a level of its own")
	}
	if kept, err := here.Remotes(t.Context(), "", -1); err != nil || len(kept) > 0 {
		t.Errorf("something was kept: %v, %v", kept, err)
	}
}
