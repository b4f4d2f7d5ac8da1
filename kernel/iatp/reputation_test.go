package iatp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

func verify(t *testing.T, w *world, q iatp.Query) iatp.Trust {
	t.Helper()
	got, err := w.Verify(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// K-026, T13: 8 is 5 for the level, 2 for reversibility, 1 for retention.
func TestAVerifiedAgent(t *testing.T) {
	w := newWorld(t)
	w.register("agent-002", agents.Supervised)
	m := iatp.Manifest{Agent: "agent-002", Scopes: []string{"data:read", "data:write"}, Retention: "ephemeral",
		Reversibility: "full"}
	if err := w.SetManifest(t.Context(), m, "", "ann"); err != nil {
		t.Fatal(err)
	}
	got := verify(t, w, iatp.Query{Agent: "agent-002", Scopes: []string{"data:read"}, Classification: "pii"})
	raw, err := json.Marshal(got)
	want := `{"verified":true,"remote_agent_id":"agent-002","trust_score":8,"trust_level":"standard",` +
		`"scopes":["data:read","data:write"],"attestation_valid":true,"policy_compatible":true}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v; want %s", raw, err, want)
	}
}

// K-025, K-027, K-036: each check refuses on its own, and a slashed agent falls below the required
// score.
func TestAnAgentThatIsNotVerified(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.register("slashed", agents.Supervised)
	if _, err := w.Slash(ctx, iatp.Slash{Agent: "slashed", Reason: "Hallucination detected", Severity: "critical",
		By: "ann"}); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(verify(t, w, iatp.Query{Agent: "slashed"}))
	want := `"trust_score":3,"trust_level":"standard","scopes":[],"attestation_valid":true,"policy_compatible":false,` +
		`"required_score":5,"error":"Trust score 3 below required 5"}`
	if err != nil || !strings.HasSuffix(string(raw), want) || !strings.HasPrefix(string(raw), `{"verified":false,`) {
		t.Errorf("%s, %v; want …%s", raw, err, want)
	}
	for _, id := range []string{"plain", "suspended", "killed", "forged", "moved", "expired"} {
		w.register(id, agents.Trusted)
		if got := verify(t, w, iatp.Query{Agent: id}); !got.Verified {
			t.Fatalf("%+v", got)
		}
	}
	w.set("suspended", agents.Suspended)
	w.set("killed", agents.Killed)
	tamper := func(statement string) {
		err := w.db.Update(ctx, func(tx database.Tx) error { _, err := tx.ExecContext(ctx, statement); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	tamper(`UPDATE manifest SET envelope = replace(envelope, '"sig":"', '"sig":"AAAA') WHERE agent = 'forged'`)
	tamper(`UPDATE manifest SET envelope = (SELECT envelope FROM manifest WHERE agent = 'plain') WHERE agent = 'moved'`)
	for name, c := range map[string]struct {
		query iatp.Query
		want  string
	}{
		"K-028 never seen":   {iatp.Query{Agent: "never-seen"}, "is unknown"},
		"K-028 with any":     {iatp.Query{Agent: "never-seen", Level: "any"}, "is unknown"},
		"suspended":          {iatp.Query{Agent: "suspended", Level: "any"}, "Agent is suspended"},
		"killed":             {iatp.Query{Agent: "killed", Level: "any"}, "Agent is killed"},
		"manifest changed":   {iatp.Query{Agent: "forged"}, "not valid"},
		"another's manifest": {iatp.Query{Agent: "moved"}, "not valid"},
		"scope": {iatp.Query{Agent: "plain", Scopes: []string{"repo:read", "repo:write"}},
			"Missing required scopes: repo:read, repo:write"},
		"pii":           {iatp.Query{Agent: "plain", Classification: "pii"}, "ephemeral retention"},
		"confidential":  {iatp.Query{Agent: "plain", Classification: "confidential"}, "must not be kept"},
		"attestation":   {iatp.Query{Agent: "plain", Attestation: &iatp.Envelope{}}, "Attestation is not valid"},
		"level":         {iatp.Query{Agent: "slashed", Level: iatp.Trusted}, "Trust score 3 below required 7"},
		"highest level": {iatp.Query{Agent: "slashed", Level: iatp.VerifiedPartner}, "Trust score 3 below required 10"},
	} {
		got := verify(t, w, c.query)
		if got.Verified || !strings.Contains(got.Error, c.want) || got.RequiredScore == nil {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
	if got := verify(t, w, iatp.Query{Agent: "slashed", Level: "any", Classification: "internal"}); !got.Verified {
		t.Errorf("any: %+v", got)
	}
	w.clock.Advance(366 * 24 * time.Hour)
	if got := verify(t, w, iatp.Query{Agent: "expired"}); got.Verified || got.AttestationValid {
		t.Errorf("a manifest of a key that has ended: %+v", got)
	}
}

// K-024
func TestQueriesThatMakeNoSense(t *testing.T) {
	w := newWorld(t)
	for _, q := range []iatp.Query{
		{}, {Agent: "a", Level: "highest"}, {Agent: "a", Classification: "secret"}, {Agent: "a", Scopes: []string{""}},
		{Agent: strings.Repeat("a", 300)},
		{Agent: "a", Level: iatp.Untrusted},
	} {
		var no *iatp.Refusal
		if _, err := w.Verify(t.Context(), q); !errors.As(err, &no) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// K-030 to K-035
func TestSlashing(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.register("agent-002", agents.Supervised)
	raw := func(v any, err error) string {
		t.Helper()
		text, failed := json.Marshal(v)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return string(text)
	}
	if got, want := raw(w.Reputation(ctx, "agent-002")),
		`{"agent_id":"agent-002","reputation_score":5.0,"trust_level":"standard","history_count":0}`; got != want {
		t.Errorf("K-034: %s, want %s", got, want)
	}
	got := raw(w.Slash(ctx, iatp.Slash{Agent: "agent-002", Reason: "Hallucination detected", Severity: "high",
		Evidence: json.RawMessage(`{"drift": 0.4}`), By: "ann"}))
	want := `{"agent_id":"agent-002","previous_score":5.0,"new_score":4.0,"penalty_applied":1.0,` +
		`"reason":"Hallucination detected","severity":"high","evidence_recorded":true}`
	if got != want {
		t.Errorf("K-035: %s, want %s", got, want)
	}
	for i, c := range []struct{ severity, score, applied, level string }{
		{"critical", "2.0", "2.0", "unknown"}, {"medium", "1.5", "0.5", "untrusted"},
		{"low", "1.25", "0.25", "untrusted"}, {"", "0.75", "0.5", "untrusted"},
		{"critical", "0.0", "0.75", "untrusted"},
	} {
		p := raw(w.Slash(ctx, iatp.Slash{Agent: "agent-002", Reason: "again", Severity: c.severity, By: "ann"}))
		r := raw(w.Reputation(ctx, "agent-002"))
		if !strings.Contains(p, `"new_score":`+c.score+`,"penalty_applied":`+c.applied+",") ||
			!strings.Contains(r, `"trust_level":"`+c.level+`","history_count":`+fmt.Sprint(i+2)) {
			t.Errorf("%+v: %s, %s", c, p, r)
		}
	}
	events, err := w.History(ctx, "agent-002", audit.Period{}, 10)
	if err != nil || len(events) != 6 || string(events[5].Evidence) != `{"drift":0.4}` || events[0].Evidence != nil ||
		events[0].By != "ann" {
		t.Errorf("%+v, %v", events, err)
	}
	if !slices.Contains(w.log, "ann: agent agent-002 slashed (high) with evidence") ||
		!slices.Contains(w.log, "ann: agent agent-002 slashed (low) without evidence") {
		t.Errorf("%q", w.log)
	}
}

// K-029, T40
func TestSlashesThatAreRefused(t *testing.T) {
	w := newWorld(t)
	w.register("a", agents.Supervised)
	for name, sl := range map[string]iatp.Slash{
		"no reason": {Agent: "a", Severity: "high"}, "blank": {Agent: "a", Reason: " \n"},
		"severity": {Agent: "a", Reason: "r", Severity: "HIGH"},
		"unknown":  {Agent: "b", Reason: "r"}, "evidence": {Agent: "a", Reason: "r", Evidence: json.RawMessage(`"x"`)},
		"long":   {Agent: "a", Reason: strings.Repeat("r", 3000)},
		"number": {Agent: "a", Reason: "r", Evidence: json.RawMessage(`{"id":9007199254740993}`)},
	} {
		var no *iatp.Refusal
		if _, err := w.Slash(t.Context(), sl); !errors.As(err, &no) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := w.Reputation(t.Context(), "a"); err != nil || r.History != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Concurrent slashes are all counted.
func TestNoSlashIsLost(t *testing.T) {
	w := newWorld(t)
	w.register("a", agents.Supervised)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			if _, err := w.Slash(t.Context(), iatp.Slash{Agent: "a", Reason: "r", Severity: "low",
				By: "ann"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if r, err := w.Reputation(t.Context(), "a"); err != nil || r.Score != 200 || r.History != 12 {
		t.Errorf("%+v, %v", r, err)
	}
}
