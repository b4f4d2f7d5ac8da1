package iatp_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// world is a service with registered agents whose state is set by the test.
type world struct {
	*iatp.Service
	db    *database.DB
	path  string
	clock *testenv.Clock

	recorded func(what string) // called for each record if not nil

	mu     sync.Mutex
	agents map[string]agents.Agent
	log    []string
}

func (w *world) Find(_ context.Context, id string) (agents.Agent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, known := w.agents[id]
	if !known {
		return a, agents.ErrUnknown
	}
	return a, nil
}

func (w *world) Append(_ context.Context, r audit.Record) error {
	w.mu.Lock()
	w.log = append(w.log, r.Principal+": "+r.Detail)
	w.mu.Unlock()
	if w.recorded != nil {
		w.recorded(r.Principal + ": " + r.Detail)
	}
	return nil
}

func (w *world) register(id string, t agents.Type) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents[id] = agents.Agent{ID: id, Name: id, Type: t, Status: agents.Active}
}

func (w *world) set(id string, status agents.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.agents[id]
	a.Status = status
	w.agents[id] = a
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{agents: map[string]agents.Agent{},
		clock: testenv.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		path:  filepath.Join(t.TempDir(), "state.db")}
	var err error
	if w.db, err = databasetest.Open(t.Context(), w.path, iatp.Schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	if w.Service, err = iatp.New(iatp.Options{Database: w.db, Agents: w, Log: w, Identity: agekey.Of(identity),
		Now: w.clock.Now}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) sign(t *testing.T, agent string, c iatp.Content) iatp.Attestation {
	t.Helper()
	a, err := w.Sign(t.Context(), agent, c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// K-023: the signature verifies with the published key and only the standard library, and every
// field is signed.
func TestASignatureVerifiesWithThePublishedKeyAndCoversEveryField(t *testing.T) {
	w := newWorld(t)
	w.register("agent-001", agents.Supervised)
	a := w.sign(t, "agent-001", iatp.Content{Text: "hello", Capabilities: []string{"reversible"},
		Metadata: json.RawMessage(`{"b": 1, "a": "x"}`)})
	keys, err := w.Published(t.Context(), "agent-001", "", 10)
	if err != nil || len(keys) != 1 || keys[0].ID != a.KeyID {
		t.Fatalf("%+v, %v", keys, err)
	}
	public, err := base64.RawURLEncoding.DecodeString(keys[0].JWK().X)
	if err != nil {
		t.Fatal(err)
	}
	e := a.Envelope
	signed := fmt.Sprintf("DSSEv1 %d %s %d %s", len(e.PayloadType), e.PayloadType, len(e.Payload), e.Payload)
	sig, err := hex.DecodeString(a.Signature)
	if err != nil || !ed25519.Verify(public, []byte(signed), sig) || !bytes.Equal(sig, e.Signatures[0].Sig) {
		t.Errorf("the signature does not verify: %v", err)
	}
	want := `{"agent_id":"agent-001","capabilities":["reversible"],` +
		`"content_hash":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",` +
		`"expires":"2026-03-01T13:00:00Z","metadata":{"a":"x","b":1},"nonce":"` + a.Nonce +
		`","protocol_version":"iatp-1.0","timestamp":"2026-03-01T12:00:00Z"}`
	if string(e.Payload) != want {
		t.Errorf("payload %s, want %s", e.Payload, want)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"signature", "agent_id", "capabilities", "content_hash", "timestamp",
		"protocol_version"} {
		if !strings.Contains(string(raw), `"`+key+`":`) {
			t.Errorf("no %s in %s", key, raw)
		}
	}
	for _, field := range []string{"agent-001", "reversible", "2cf24", "13:00", `"x"`, a.Nonce, "iatp-1.0", "12:00"} {
		forged := e
		forged.Payload = []byte(strings.Replace(string(e.Payload), field, field[:len(field)-1]+"~", 1))
		if _, err := w.Accept(t.Context(), "agent-001", forged); !errors.Is(err, iatp.ErrForged) {
			t.Errorf("%s can be changed: %v", field, err)
		}
	}
}

// K-023: the signed encoding is unambiguous.
func TestPartsDoNotRunIntoEachOther(t *testing.T) {
	w := newWorld(t)
	w.register("a", agents.Supervised)
	w.register("a|b", agents.Supervised)
	first := w.sign(t, "a", iatp.Content{Text: "b|c", Capabilities: []string{"x", "y"}})
	second := w.sign(t, "a|b", iatp.Content{Text: "c", Capabilities: []string{"x|y"}})
	if first.Signature == second.Signature || bytes.Equal(first.Envelope.Payload, second.Envelope.Payload) {
		t.Error("two contents have one signature")
	}
}

// K-025: forged, replayed and expired attestations are refused, and so are those of invalid keys
// and inactive agents.
func TestAttestationsThatDoNotCount(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		w.register(id, agents.Supervised)
	}
	accept := func(agent string, e iatp.Envelope) error {
		_, err := w.Accept(t.Context(), agent, e)
		return err
	}
	good := w.sign(t, "a", iatp.Content{Text: "x"}).Envelope
	if err := accept("b", good); !errors.Is(err, iatp.ErrForged) {
		t.Errorf("another agent's: %v", err)
	}
	if err := accept("a", good); err != nil {
		t.Fatal(err)
	}
	if err := accept("a", good); !errors.Is(err, iatp.ErrReplayed) {
		t.Errorf("replayed: %v", err)
	}
	old := w.sign(t, "a", iatp.Content{Text: "x"}).Envelope
	w.clock.Advance(time.Hour)
	if err := accept("a", old); !errors.Is(err, iatp.ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	early := w.sign(t, "a", iatp.Content{Text: "x"}).Envelope
	w.clock.Advance(-2 * time.Hour)
	if err := accept("a", early); err == nil {
		t.Error("an attestation from the future is accepted")
	}
	w.clock.Advance(2 * time.Hour)
	of := w.sign(t, "a", iatp.Content{Text: "x"})
	manifest, err := w.Offer(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := accept("a", manifest.Manifest); !errors.Is(err, iatp.ErrForged) {
		t.Errorf("a manifest counts as an attestation: %v", err)
	}
	for name, change := range map[string]func(*iatp.Envelope){
		"no signature": func(e *iatp.Envelope) { e.Signatures = nil },
		"empty":        func(e *iatp.Envelope) { *e = iatp.Envelope{} },
		"unknown key": func(e *iatp.Envelope) {
			e.Signatures = []iatp.Signature{{KeyID: "x",
				Sig: e.Signatures[0].Sig}}
		},
		"short": func(e *iatp.Envelope) {
			e.Signatures = []iatp.Signature{{KeyID: of.KeyID, Sig: e.Signatures[0].Sig[:63]}}
		},
		"many":           func(e *iatp.Envelope) { e.Signatures = slices.Repeat(e.Signatures, 1000) },
		"type":           func(e *iatp.Envelope) { e.PayloadType += " " },
		"trailing space": func(e *iatp.Envelope) { e.Payload = append(slices.Clone(e.Payload), ' ') },
	} {
		forged := of.Envelope
		change(&forged)
		if err := accept("a", forged); !errors.Is(err, iatp.ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.Revoke(t.Context(), "a", of.KeyID, "ann"); err != nil {
		t.Fatal(err)
	}
	if err := accept("a", of.Envelope); !errors.Is(err, iatp.ErrForged) {
		t.Errorf("of a revoked key: %v", err)
	}
	var no *iatp.Refusal
	if err := w.Revoke(t.Context(), "a", of.KeyID, "ann"); !errors.As(err, &no) {
		t.Errorf("revoked twice: %v", err)
	}
	if again := w.sign(t, "a", iatp.Content{Text: "x"}); again.KeyID == of.KeyID {
		t.Error("a revoked key signs")
	}
}

func TestKeysAreRenewedRotatedAndEncrypted(t *testing.T) {
	w := newWorld(t)
	w.register("a", agents.Supervised)
	first := w.sign(t, "a", iatp.Content{Text: "x"})
	if second := w.sign(t, "a", iatp.Content{Text: "y"}); second.KeyID != first.KeyID {
		t.Error("each signature has a key of its own")
	}
	rotated, err := w.Rotate(t.Context(), "a", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if third := w.sign(t, "a", iatp.Content{Text: "z"}); third.KeyID != rotated.ID {
		t.Errorf("%s signs, not the new key %s", third.KeyID, rotated.ID)
	}
	if _, err := w.Accept(t.Context(), "a", first.Envelope); err != nil {
		t.Errorf("what the old key signed before: %v", err)
	}
	w.clock.Advance(340 * 24 * time.Hour)
	if late := w.sign(t, "a", iatp.Content{Text: "x"}); late.KeyID == rotated.ID {
		t.Error("a key signs that ends within a month")
	}
	keys, err := w.Keys(t.Context(), "a")
	if err != nil || len(keys) != 3 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	var sealed, public []byte
	err = w.db.View(t.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(t.Context(), `SELECT sealed, public FROM agent_key LIMIT 1`).Scan(&sealed, &public)
	})
	if err != nil || !bytes.HasPrefix(sealed, []byte("age-encryption.org/v1")) {
		t.Errorf("the private key is stored as %q, %v", sealed, err)
	}
	// A key in another agent's row is reported as damage and never signs in the other's name.
	w.register("b", agents.Supervised)
	w.sign(t, "b", iatp.Content{Text: "x"})
	err = w.db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE agent_key SET sealed = ? WHERE agent = 'b'`, sealed)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Sign(t.Context(), "b", iatp.Content{Text: "x"}); err == nil ||
		!strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v", err)
	}
}

// K-022: content that cannot be signed, and agents that cannot sign.
func TestWhatIsNotSigned(t *testing.T) {
	w := newWorld(t)
	for id, status := range map[string]agents.Status{"active": agents.Active, "suspended": agents.Suspended,
		"killed": agents.Killed} {
		w.register(id, agents.Trusted)
		w.set(id, status)
	}
	for name, c := range map[string]struct {
		agent string
		iatp.Content
	}{
		"unknown agent": {"none", iatp.Content{}},
		"suspended":     {"suspended", iatp.Content{}},
		"killed":        {"killed", iatp.Content{}},
		"no object":     {"active", iatp.Content{Metadata: json.RawMessage(`[1]`)}},
		"no JSON":       {"active", iatp.Content{Metadata: json.RawMessage(`{"a":NaN}`)}},
		"a number":      {"active", iatp.Content{Metadata: json.RawMessage(`{"a":1e999}`)}},
		// issue 24: it was signed as …992
		"a long number": {"active", iatp.Content{Metadata: json.RawMessage(`{"a":[9007199254740993]}`)}},
		"large metadata": {"active",
			iatp.Content{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 70000) + `"}`)}},
		"large content": {"active", iatp.Content{Text: strings.Repeat("x", iatp.MaxContent+1)}},
		"many":          {"active", iatp.Content{Capabilities: make([]string, 101)}},
		"empty":         {"active", iatp.Content{Capabilities: []string{""}}},
		"control":       {"active", iatp.Content{Capabilities: []string{"a\nb"}}},
		"deep": {"active",
			iatp.Content{Metadata: json.RawMessage(strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000))}},
	} {
		var no *iatp.Refusal
		if a, err := w.Sign(t.Context(), c.agent, c.Content); !errors.As(err, &no) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

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
