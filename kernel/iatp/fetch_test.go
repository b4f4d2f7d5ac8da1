package iatp_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

func TestAManifestIsFetchedAndPinned(t *testing.T) {
	there, here := newWorld(t), newWorld(t)
	there.register("far", agents.Trusted)
	if _, err := there.PublishedManifest(t.Context(), "far"); err == nil {
		t.Error("a manifest is published that no operator made")
	}
	if err := there.SetManifest(t.Context(), iatp.Manifest{Agent: "far", Retention: "ephemeral", Reversibility: "none"},
		"", "bob"); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		offer, err := there.PublishedManifest(t.Context(), "far")
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(offer)
	}))
	defer web.Close()
	fetched, err := iatp.Fetch(t.Context(), web.URL+iatp.ManifestPath+"far")
	if err != nil {
		t.Fatal(err)
	}
	offer, err := there.Offer(t.Context(), "far")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(offer, fetched); diff != "" {
		t.Error(diff)
	}
	if id, err := here.Pin(t.Context(), fetched, iatp.Standard, "ann"); err != nil || id != "far" {
		t.Error(id, err)
	}
}

func TestWhatIsNotFetched(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"a redirect": answer(http.StatusFound, "application/json", "{}"),
		"not found":  answer(http.StatusNotFound, "application/json", "{}"),
		"a web page": answer(http.StatusOK, "text/html", "{}"),
		"no JSON":    answer(http.StatusOK, "application/json", "<html>"),
		"more than a megabyte": answer(http.StatusOK, "application/json",
			`{"keys":[],"x":"`+strings.Repeat("x", iatp.MaxPinned)+`"}`),
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(handle)
			defer web.Close()
			var refused *iatp.Refusal
			if _, err := iatp.Fetch(t.Context(), web.URL); !errors.As(err, &refused) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
	for _, address := range []string{"http://agents.example/m", "https://ann:secret@agents.example/m",
		"file:///etc/passwd", "https://", "http://127.0.0.1.agents.example/", "::"} {
		var refused *iatp.Refusal
		if _, err := iatp.Fetch(t.Context(), address); !errors.As(err, &refused) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want a refusal", address, err)
		}
	}
}
