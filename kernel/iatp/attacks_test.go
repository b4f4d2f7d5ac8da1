package iatp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// offerOf returns an offer of an agent at another installation, and a newer one.
func offerOf(t *testing.T, agent string) (first, second iatp.Pinned) {
	t.Helper()
	there := newWorld(t)
	there.clock.Advance(-2 * time.Minute)
	there.register(agent, agents.Trusted)
	offer := func() iatp.Pinned {
		t.Helper()
		m := iatp.Manifest{Agent: agent, Retention: "ephemeral", Reversibility: "full"}
		if err := there.SetManifest(t.Context(), m, "", "bob"); err != nil {
			t.Fatal(err)
		}
		p, err := there.Offer(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		there.clock.Advance(time.Minute)
		return p
	}
	return offer(), offer()
}

// Issue 24, item 8: what another operator does while an agent is pinned is not lost. Each test does it
// when the pin is recorded, before it is stored.
func TestChangesDuringAPin(t *testing.T) {
	is := true
	first, second := offerOf(t, "far")
	stranger, _ := offerOf(t, "far") // with other keys
	for _, test := range []struct {
		name      string
		pinned    bool // before
		meanwhile func(w *world) error
		pin       iatp.Pinned
		refused   bool
		suspended bool
		known     bool
	}{
		{"it is suspended", true, func(w *world) error {
			_, err := w.ChangeRemote(t.Context(), "far", iatp.RemoteChange{Suspended: &is}, "eve")
			return err
		}, second, false, true, true},
		{"it is unpinned", true, func(w *world) error {
			return w.Unpin(t.Context(), "far", "eve")
		}, second, true, false, false},
		{"the same manifest is pinned", true, func(w *world) error {
			_, err := w.Pin(t.Context(), second, iatp.Unknown, "eve")
			return err
		}, second, true, false, true},
		{"another key is pinned first", false, func(w *world) error {
			_, err := w.Pin(t.Context(), stranger, iatp.Unknown, "eve")
			return err
		}, first, true, false, true},
		{"it is pinned and suspended", false, func(w *world) error {
			_, err := w.Pin(t.Context(), first, iatp.Unknown, "eve")
			if err == nil {
				_, err = w.ChangeRemote(t.Context(), "far", iatp.RemoteChange{Suspended: &is}, "eve")
			}
			return err
		}, first, true, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if test.pinned {
				if _, err := w.Pin(t.Context(), first, iatp.Standard, "ann"); err != nil {
					t.Fatal(err)
				}
			}
			w.recorded = func(what string) {
				if strings.HasPrefix(what, "ann: ") {
					if err := test.meanwhile(w); err != nil {
						t.Error(err)
					}
				}
			}
			_, err := w.Pin(t.Context(), test.pin, iatp.Trusted, "ann")
			if (err != nil) != test.refused {
				t.Errorf("got %v, want refused: %v", err, test.refused)
			}
			r, err := w.Remote(t.Context(), "far")
			if (err == nil) != test.known || r.Suspended != test.suspended {
				t.Errorf("got %+v %v, want suspended: %v", r, err, test.suspended)
			}
			keys, err := w.Keys(t.Context(), "far")
			if err != nil || test.known && len(keys) != 1 {
				t.Errorf("got %d keys %v, want those of one pin", len(keys), err)
			}
			got := verify(t, w, iatp.Query{Agent: "far", Level: "any"})
			if got.Verified != (test.known && !test.suspended) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Issue 24, item 8: many callers change, slash and verify one remote agent. A suspended one is never
// verified, no slash is lost, and a restart changes nothing.
func TestCallersRaceForARemoteAgent(t *testing.T) {
	w := newWorld(t)
	first, _ := offerOf(t, "far")
	if _, err := w.Pin(t.Context(), first, iatp.VerifiedPartner, "ann"); err != nil {
		t.Fatal(err)
	}
	is := true
	if _, err := w.ChangeRemote(t.Context(), "far", iatp.RemoteChange{Suspended: &is}, "ann"); err != nil {
		t.Fatal(err)
	}
	levels := []iatp.Level{iatp.Standard, iatp.Trusted, iatp.VerifiedPartner}
	var callers sync.WaitGroup
	for n := range 9 {
		callers.Go(func() {
			for range 4 {
				var err error
				switch n % 3 {
				case 0:
					_, err = w.ChangeRemote(t.Context(), "far", iatp.RemoteChange{Level: &levels[n/3]}, "ann")
				case 1:
					_, err = w.Slash(t.Context(), iatp.Slash{Agent: "far", Reason: "r", Severity: "low", By: "ann"})
				case 2:
					var got iatp.Trust
					got, err = w.Verify(t.Context(), iatp.Query{Agent: "far", Level: "any"})
					if got.Verified {
						t.Errorf("a suspended agent is verified: %+v", got)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	before, err := w.Remotes(t.Context(), "", -1)
	if err != nil || len(before) != 1 || !before[0].Suspended || before[0].Reputation != 200 {
		t.Errorf("got %+v %v, want a suspended agent with 2 points after 12 slashes", before, err)
	}
	if err := w.db.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := databasetest.Open(t.Context(), w.path, agents.Schema, iatp.Schema)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	again, err := iatp.New(iatp.Options{Database: db, Agents: w, Log: w, Identity: agekey.Of(identity),
		Now: w.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if after, err := again.Remotes(t.Context(), "", -1); err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("after a restart: got %+v %v, want %+v", after, err, before)
	}
}

// Issue 24, item 8: a number in signed metadata or in evidence is signed as it was written, or refused.
func TestSignedNumbersStay(t *testing.T) {
	w := newWorld(t)
	w.register("a", agents.Supervised)
	var signed, refused int
	for _, number := range []string{"9007199254740993", "9007199254740992", "-9007199254740993", "1e400", "1e-400",
		"123456789012345678901234567890", "0.1", "0.10", "1.0", "1E2", "100", "-0", "0.30000000000000004",
		"0.300000000000000041", "3.141592653589793238462643", "1e22", "1e23", "5e-324", "2.5e-324",
		"1.7976931348623157e308", "1.7976931348623159e308", "18446744073709551616", "4503599627370497.5"} {
		metadata := json.RawMessage(`{"n": [` + number + `]}`)
		a, err := w.Sign(t.Context(), "a", iatp.Content{Text: "x", Metadata: metadata})
		var no *iatp.Refusal
		if errors.As(err, &no) {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		signed++
		var payload struct {
			Metadata struct{ N []json.Number }
		}
		if err := json.Unmarshal(a.Envelope.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		want, _ := new(big.Rat).SetString(number)
		got, ok := new(big.Rat).SetString(string(payload.Metadata.N[0]))
		if !ok || got.Cmp(want) != 0 {
			t.Errorf("%s is signed as %s", number, payload.Metadata.N[0])
		}
	}
	if signed < 8 || refused < 8 {
		t.Errorf("%d numbers are signed and %d refused", signed, refused)
	}
}

// Issue 24, item 8: an agent that no URL can name could not be suspended through the API.
func TestAnAgentWithoutAURLIsNotPinned(t *testing.T) {
	for _, id := range []string{".", "..", "\u0000", "a\nb", "", strings.Repeat("x", 201), "\x7f"} {
		there := newWorld(t)
		there.register(id, agents.Trusted)
		offer, err := there.Offer(t.Context(), id)
		if err != nil {
			continue
		}
		if _, err := newWorld(t).Pin(t.Context(), offer, iatp.Standard, "ann"); err == nil {
			t.Errorf("%q is pinned", id)
		}
	}
}
