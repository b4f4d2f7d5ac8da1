package models_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/kernel/models"
)

// completion returns a response of the API with one text.
func completion(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"choices":[{"message":{"role":"assistant","content":` + string(quoted) + `},"finish_reason":"stop"}]}`
}

// endpoint serves the API and returns a model behind it.
func endpoint(t *testing.T, name string, answer http.HandlerFunc) models.Model {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return models.Model{Name: name, URL: server.URL + "/v1", Model: name + "-at-endpoint",
		Key: secret.New("sk-of-" + name), Timeout: 20 * time.Second}
}

func TestEachModelIsAskedAtItsOwnEndpointWithItsOwnKey(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		var got struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || len(got.Messages) != 2 {
			t.Errorf("%v, %+v", err, got)
			return
		}
		said := fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", got.Model, " ",
			got.Messages[0].Content, " ", got.Messages[1].Content)
		fmt.Fprint(w, completion(said))
	}
	known, err := models.New([]models.Model{endpoint(t, "b", echo), endpoint(t, "a", echo)})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(known.Names()); got != "[a b]" {
		t.Error(got)
	}
	answers := known.Ask(t.Context(), "ann", []string{"b", "a", "b", "c"},
		models.Question{System: "judge", User: "this"})
	if len(answers) != 3 || !errors.Is(answers[2].Err, models.ErrNotConfigured) {
		t.Fatalf("%+v", answers)
	}
	for i, name := range []string{"b", "a"} {
		want := "POST /v1/chat/completions Bearer sk-of-" + name + " " + name + "-at-endpoint judge this"
		if answers[i].Model != name || answers[i].Text != want || answers[i].Err != nil {
			t.Errorf("%+v, want %q", answers[i], want)
		}
	}
}

// T43: a model that fails is named, with a sentence that contains neither address nor key.
func TestWhatIsNoAnswerIsAnError(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	for want, answer := range map[string]http.HandlerFunc{
		"status 500": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sk-of-m", 500) },
		"status 307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"the API":       text("<html>"),
		"the form":      text(`{"choices":[]}`),
		"form that the": text(`{"choices":[{"message":{"content":7}}]}`),
		"is empty":      text(completion(" \n")),
		"refused":       text(`{"choices":[{"message":{"content":"","refusal":"no"}}]}`),
		"not whole":     text(`{"choices":[{"message":{"content":"half"},"finish_reason":"length"}]}`),
		"bytes of":      text(completion(strings.Repeat("x", 300<<10))),
		"more than":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, endless{}) },
		"breaks off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "{")
		},
		"be reached": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		known, err := models.New([]models.Model{endpoint(t, "m", answer)})
		if err != nil {
			t.Fatal(err)
		}
		got := known.Ask(t.Context(), "ann", []string{"m"}, models.Question{User: "x"})[0]
		if got.Err == nil || got.Text != "" || !strings.Contains(got.Err.Error(), want) ||
			strings.Contains(got.Err.Error(), "sk-") || strings.Contains(got.Err.Error(), "127.0.0.1") {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// endless is an infinite body.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestASlowModelCostsItsOwnTimeOnly(t *testing.T) {
	hold := make(chan struct{})
	slow := endpoint(t, "slow", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	defer close(hold)
	slow.Timeout = 100 * time.Millisecond
	quick := endpoint(t, "quick", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, completion("yes")) })
	known, err := models.New([]models.Model{slow, quick})
	if err != nil {
		t.Fatal(err)
	}
	answers := known.Ask(t.Context(), "ann", []string{"slow", "quick"}, models.Question{User: "x"})
	if answers[0].Err == nil || !strings.Contains(answers[0].Err.Error(), "no answer within 100ms") ||
		answers[1].Text != "yes" {
		t.Errorf("%+v", answers)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := known.Ask(gone, "ann", []string{"quick"}, models.Question{User: "x"})[0]; got.Err == nil {
		t.Errorf("a cancelled request was answered: %+v", got)
	}
	if got := known.Ask(t.Context(), "ann", []string{"quick"},
		models.Question{User: strings.Repeat("x", models.MaxQuestion+1)})[0]; got.Err == nil {
		t.Error("a question of any size is sent")
	}
}

func TestUnusableModelsAreRefusedAtTheStart(t *testing.T) {
	for _, list := range [][]models.Model{
		{{Name: "a", Model: "a", URL: "ftp://host"}}, {{Name: "a", Model: "a", URL: "https://user:pw@host/v1"}},
		{{Name: "a", URL: "https://host"}},
		{{Name: "a", Model: "a", URL: "http://h"}, {Name: "a", Model: "b", URL: "http://h"}},
	} {
		if _, err := models.New(list); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%+v: %v", list, err)
		}
	}
}
