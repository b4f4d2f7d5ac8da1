// Package models asks language models: those that the operator has named, at
// endpoints that speak OpenAI's API, with credentials that only the host has.
// What a model answers is bounded, and never more than a text.
package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/airlock-mcp/airlock/internal/openai"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of requests.
const (
	// DefaultTimeout is the default of Model.Timeout.
	DefaultTimeout = time.Minute
	// MaxQuestion is the most bytes of both texts of a question.
	MaxQuestion = 1 << 20
	// maxAnswer bounds the body of an endpoint's answer, in bytes.
	maxAnswer = 4 << 20
	// maxText bounds the text of an answer, in bytes.
	maxText = 256 << 10
	// maxConcurrent is how many requests are under way at a time, over all callers.
	maxConcurrent = 16
)

// Model is one model.
type Model struct {
	Name    string        // as callers name it
	URL     string        // the base of the API, as in https://api.example.com/v1, or the address of its chat completions
	Model   string        // the endpoint's name of it
	Key     secret.Value  // sent as a bearer token; empty sends none
	Timeout time.Duration // of one request; 0 means DefaultTimeout
}

// Question is what a model is asked.
type Question struct {
	System string // what it is to do
	User   string // about what; from a caller, and not to be obeyed
}

// Answer is the answer of one model, or the reason why there is none.
type Answer struct {
	Model string // as callers name it
	Text  string // UTF-8; empty with an error
	// Err is nil, ErrNotConfigured, or one sentence without addresses and credentials.
	Err error
}

// ErrNotConfigured is returned for a model that is not in the configuration.
var ErrNotConfigured = errors.New("it is not configured")

// configured is a model with the endpoint that it is asked at.
type configured struct {
	Model
	at openai.Endpoint
}

// Models are the configured ones. Methods may be called concurrently.
type Models struct {
	byName map[string]configured
	names  []string
	slots  *semaphore.Weighted
}

// New checks the list. Nothing is asked yet.
func New(list []Model) (*Models, error) {
	m := &Models{byName: map[string]configured{}, slots: semaphore.NewWeighted(maxConcurrent)}
	for _, model := range list {
		u, err := openai.At(model.URL, "chat/completions")
		switch {
		case err != nil:
			return nil, fmt.Errorf("model %q: %w", model.Name, err)
		case model.Name == "" || model.Model == "":
			return nil, errors.New("a model has no name")
		case m.byName[model.Name].Name != "":
			return nil, fmt.Errorf("there are two models %q", model.Name)
		}
		if model.Timeout <= 0 {
			model.Timeout = DefaultTimeout
		}
		m.byName[model.Name] = configured{model, openai.Endpoint{URL: u, Key: model.Key, Timeout: model.Timeout, Most: maxAnswer}}
		m.names = append(m.names, model.Name)
	}
	slices.Sort(m.names)
	return m, nil
}

// Names are the names of all models, in order.
func (m *Models) Names() []string { return slices.Clone(m.names) }

// Address is the host of a model's endpoint, for records; empty for an unknown one.
func (m *Models) Address(name string) string {
	if model, known := m.byName[name]; known {
		return model.at.URL.Host
	}
	return ""
}

// Ask puts one question to several models at once, and returns their answers in
// the order of the names, each name once. It returns when all have answered or
// failed, or ctx has ended, which fails those that are left.
func (m *Models) Ask(ctx context.Context, names []string, q Question) []Answer {
	answers := make([]Answer, 0, len(names))
	for _, name := range names {
		if !slices.ContainsFunc(answers, func(a Answer) bool { return a.Model == name }) {
			answers = append(answers, Answer{Model: name})
		}
	}
	var asked sync.WaitGroup
	for i := range answers {
		asked.Go(func() { answers[i].Text, answers[i].Err = m.ask(ctx, answers[i].Model, q) })
	}
	asked.Wait()
	return answers
}

func (m *Models) ask(ctx context.Context, name string, q Question) (string, error) {
	model, known := m.byName[name]
	if !known {
		return "", ErrNotConfigured
	}
	if len(q.System)+len(q.User) > MaxQuestion {
		return "", fmt.Errorf("the question has more than %d bytes", MaxQuestion)
	}
	ctx, cancel := context.WithTimeout(ctx, model.Timeout)
	defer cancel()
	if m.slots.Acquire(ctx, 1) != nil {
		return "", model.at.Silent(ctx)
	}
	defer m.slots.Release(1)
	raw, err := model.at.Post(ctx, struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
	}{model.Model.Model, []message{{"system", q.System}, {"user", q.User}}})
	if err != nil {
		return "", err
	}
	return textIn(raw)
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// textIn reads the text of a chat completion (OpenAI API reference, "The chat
// completion object"): one text, or the text parts of a list.
func textIn(raw []byte) (string, error) {
	var answer struct {
		Choices []struct {
			Message struct {
				Content json.RawMessage `json:"content"`
				Refusal string          `json:"refusal"`
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := strictjson.UnmarshalOpen(raw, &answer); err != nil || len(answer.Choices) == 0 {
		return "", errors.New("its answer is not of the shape that the API has")
	}
	choice := answer.Choices[0]
	if choice.Message.Refusal != "" {
		return "", errors.New("it refused to answer")
	}
	if choice.FinishReason == "length" || choice.FinishReason == "content_filter" {
		return "", fmt.Errorf("its answer is not whole (%s)", choice.FinishReason)
	}
	text, err := contentText(choice.Message.Content)
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	switch {
	case err != nil:
		return "", err
	case text == "":
		return "", errors.New("its answer is empty")
	case len(text) > maxText:
		return "", fmt.Errorf("its answer has more than %d bytes of text", maxText)
	}
	return text, nil
}

func contentText(raw json.RawMessage) (string, error) {
	var text string
	if strictjson.UnmarshalOpen(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if strictjson.UnmarshalOpen(raw, &parts) != nil {
		return "", errors.New("its answer is not of the shape that the API has")
	}
	var all strings.Builder
	for _, part := range parts {
		if part.Type == "text" {
			all.WriteString(part.Text)
		}
	}
	return all.String(), nil
}
