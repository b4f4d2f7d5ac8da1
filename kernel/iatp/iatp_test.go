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
	if w.db, err = databasetest.Open(t.Context(), w.path, agents.Schema, iatp.Schema); err != nil {
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
