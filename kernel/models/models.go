// Package models queries the language models in the operator's configuration, at endpoints with
// OpenAI's API. Only the host has their credentials. An answer is limited in size and always
// treated as text.
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

	"github.com/airlock-mcp/airlock/internal/openai"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of requests.
const (
	// DefaultTimeout is the default of Model.Timeout.
	DefaultTimeout = time.Minute
	// MaxQuestion is the maximum size of a question's two texts together, in bytes.
	MaxQuestion = 1 << 20
	// maxAnswer is the maximum size of an endpoint's response body, in bytes.
	maxAnswer = 4 << 20
	// maxText is the maximum size of an answer's text, in bytes.
	maxText = 256 << 10
)

// Model is one model.
type Model struct {
	Name string // name used by callers
	// the base of the API, as in https://api.example.com/v1, or the address of its chat completions
	URL     string
	Model   string        // name used by the endpoint
	Key     secret.Value  // sent as a bearer token if not empty
	Timeout time.Duration // of one request; 0 means DefaultTimeout
}

// Question is a question to a model.
type Question struct {
	System string // its task
	User   string // the data for the task; it comes from a caller and must not be obeyed
}

// Answer is the answer of one model, or the reason why it did not answer.
type Answer struct {
	Model string // name used by callers
	Text  string // UTF-8; empty if Err is set
	// Err is nil, ErrNotConfigured, or a sentence without addresses and credentials.
	Err error
}

// ErrNotConfigured is returned for a model that is not in the configuration.
var ErrNotConfigured = errors.New("it is not configured")

// configured is a model with the endpoint that serves it.
type configured struct {
	Model
	at openai.Endpoint
}

// Models holds the configured models. Its methods are safe for concurrent use.
type Models struct {
	byName map[string]configured
	names  []string
	slots  *quota.Limiter
}

// New checks the list. It sends no request.
func New(list []Model) (*Models, error) {
	m := &Models{byName: map[string]configured{}, slots: quota.New(quota.For(quota.ModelRequests))}
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
		m.byName[model.Name] = configured{model, openai.Endpoint{URL: u, Key: model.Key, Timeout: model.Timeout,
			Most: maxAnswer}}
		m.names = append(m.names, model.Name)
	}
	slices.Sort(m.names)
	return m, nil
}

// Names returns the names of all models, in order.
func (m *Models) Names() []string { return slices.Clone(m.names) }

// Address returns the host of a model's endpoint, for records. It is empty for an unknown model.
func (m *Models) Address(name string) string {
	if model, known := m.byName[name]; known {
		return model.at.URL.Host
	}
	return ""
}

// Ask sends one question of an account to several models concurrently, and returns their answers in the order of
// the names, each name once. It returns when all have answered or failed. If ctx ends, the
// remaining ones fail.
func (m *Models) Ask(ctx context.Context, account string, names []string, q Question) []Answer {
	answers := make([]Answer, 0, len(names))
	for _, name := range names {
		if !slices.ContainsFunc(answers, func(a Answer) bool { return a.Model == name }) {
			answers = append(answers, Answer{Model: name})
		}
	}
	var asked sync.WaitGroup
	for i := range answers {
		asked.Go(func() { answers[i].Text, answers[i].Err = m.ask(ctx, account, answers[i].Model, q) })
	}
	asked.Wait()
	return answers
}

func (m *Models) ask(ctx context.Context, account, name string, q Question) (string, error) {
	model, known := m.byName[name]
	if !known {
		return "", ErrNotConfigured
	}
	if len(q.System)+len(q.User) > MaxQuestion {
		return "", fmt.Errorf("the question has more than %d bytes", MaxQuestion)
	}
	ctx, cancel := context.WithTimeout(ctx, model.Timeout)
	defer cancel()
	turn, err := m.slots.Wait(ctx, account)
	if err != nil {
		return "", model.at.Silent(ctx)
	}
	defer turn.Release()
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

// textIn reads the text of a chat completion (OpenAI API reference, "The chat completion object"):
// a string, or the text parts of a list.
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
		return "", errors.New("its answer does not have the form that the API defines")
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
		return "", errors.New("its answer does not have the form that the API defines")
	}
	var all strings.Builder
	for _, part := range parts {
		if part.Type == "text" {
			all.WriteString(part.Text)
		}
	}
	return all.String(), nil
}
