// Package webhook sends messages about questions to people to other programs, such as a chat. The messages are signed
// as in Standard Webhooks. They have no arguments, and their links give no rights: the person signs in to the console.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// The types of messages.
const (
	typeAsked     = "approval.asked"
	typeEscalated = "approval.escalated"
	typeClosed    = "approval.closed"
)

const (
	requestTime = 15 * time.Second
	closedTime  = time.Minute // for the message that a question is closed, with all attempts
	firstRetry  = 5 * time.Second
	lastRetry   = 5 * time.Minute
	secretStart = "whsec_"
	minSecret   = 24 // bytes, as Standard Webhooks requires
)

// Endpoint receives messages.
type Endpoint struct {
	URL    string
	Secret secret.Value // whsec_ and base64
}

// Options of New. All but the last two are required.
type Options struct {
	// Endpoints returns the endpoints as they are configured now. It is called for each question.
	Endpoints func(ctx context.Context) ([]Endpoint, error)
	// Link returns a one-time URL that leads a person to a question, or "" without a console.
	Link func(question string) string
	// Awake returns the first time from t on at which people may be disturbed.
	Awake  func(t time.Time) time.Time
	Logger *slog.Logger
	Client *http.Client                                     // nil: one that checks addresses
	Wait   func(ctx context.Context, d time.Duration) error // nil: until d has passed
}

// Sender sends a message to each endpoint when a question is asked, escalated and closed. Its methods are safe for
// concurrent use.
type Sender struct {
	opts  Options
	start func(do func(ctx context.Context)) // in the background, until Close
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu     sync.Mutex                     // guards the fields below
	open   map[string]chan approval.Event // by question, for the events after the first one
	closed bool
}

// New returns a Sender. Note must be called for each event of a desk.
func New(ctx context.Context, opts Options) *Sender {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Sender{opts: opts, stop: stop, open: map[string]chan approval.Event{}}
	s.start = func(do func(ctx context.Context)) { s.work.Go(func() { do(ctx) }) }
	if s.opts.Client == nil {
		s.opts.Client = &http.Client{Timeout: requestTime, Transport: reach.NewTransport(reach.Configured(), nil),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if s.opts.Wait == nil {
		s.opts.Wait = wait
	}
	return s
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Close ends all attempts. It may be called twice.
func (s *Sender) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	return nil
}

// Note takes an event of a desk. It does not wait.
func (s *Sender) Note(e approval.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := e.Question.ID
	events := s.open[id]
	switch {
	case s.closed:
	case e.Open && events == nil:
		events = make(chan approval.Event, 2) // one that it is escalated, and one that it is closed
		s.open[id] = events
		s.start(func(ctx context.Context) { s.follow(ctx, e, events) })
	case events == nil:
	case e.Escalated != "":
		events <- e
	case !e.Open:
		delete(s.open, id)
		events <- e
	}
}

// follow sends the messages about one question.
func (s *Sender) follow(ctx context.Context, asked approval.Event, events <-chan approval.Event) {
	endpoints, err := s.opts.Endpoints(ctx)
	if err != nil {
		s.opts.Logger.ErrorContext(ctx, "webhooks cannot be used", slog.Any(telemetry.KeyError, err))
	}
	while, over := context.WithCancel(ctx) // ends when the question is closed
	defer over()
	var each []chan approval.Event
	var sending sync.WaitGroup
	defer sending.Wait()
	for _, endpoint := range endpoints {
		own := make(chan approval.Event, 2)
		each = append(each, own)
		sending.Go(func() { s.to(ctx, while, endpoint, asked, own) })
	}
	for {
		select {
		case e := <-events:
			for _, own := range each {
				own <- e
			}
			if e.Escalated == "" {
				over()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// rest waits for the end of the quiet hours.
func (s *Sender) rest(ctx context.Context) error {
	now := time.Now()
	if d := s.opts.Awake(now).Sub(now); d > 0 {
		return s.opts.Wait(ctx, d)
	}
	return ctx.Err()
}

// to sends the messages about a question to one endpoint, until ctx ends. while ends when the question is closed. An
// endpoint that has got no message gets none about the end.
func (s *Sender) to(ctx, while context.Context, endpoint Endpoint, e approval.Event, events <-chan approval.Event) {
	got := s.rest(while) == nil && s.deliver(while, endpoint, typeAsked, e) == nil
	for {
		select {
		case e = <-events:
		case <-ctx.Done():
			return
		}
		if e.Escalated == "" {
			break
		}
		got = s.deliver(while, endpoint, typeEscalated, e) == nil || got
	}
	if got {
		last, stop := context.WithTimeout(ctx, closedTime)
		defer stop()
		_ = s.deliver(last, endpoint, typeClosed, e) // it was logged
	}
}

// message is the body of a message.
type message struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

// data describes a question without its arguments, which a chat need not know.
type data struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Issuer    string    `json:"issuer,omitempty"`
	RunID     string    `json:"run_id"`
	Server    string    `json:"server_id,omitempty"`
	Tool      string    `json:"tool_name"`
	Risk      string    `json:"risk"`
	Asked     time.Time `json:"asked"`
	Expires   time.Time `json:"expires"`
	Asks      string    `json:"asks"`                // who must approve
	Escalated string    `json:"escalated,omitempty"` // the role that may approve in place of the owner
	Outcome   string    `json:"outcome,omitempty"`   // of a closed question
	URL       string    `json:"url,omitempty"`       // a one-time link; a person signs in there
}

// body returns the body of a message.
func (s *Sender) body(kind string, e approval.Event) ([]byte, error) {
	q := e.Question
	d := data{ID: q.ID, Principal: q.Principal, Issuer: q.Issuer, RunID: q.RunID, Server: q.ServerID, Tool: q.ToolName,
		Risk: q.Risk, Asked: q.Asked, Expires: q.Expires, Asks: q.Whom(), Escalated: e.Escalated, Outcome: e.Outcome}
	if d.Asks == "" {
		d.Asks = "owner"
	}
	if kind != typeClosed {
		d.URL = s.opts.Link(q.ID)
	}
	return json.Marshal(message{kind, time.Now().UTC(), d})
}

// deliver sends a message until the endpoint accepts or refuses it, or ctx ends.
func (s *Sender) deliver(ctx context.Context, endpoint Endpoint, kind string, e approval.Event) error {
	body, err := s.body(kind, e)
	id := telemetry.NewID("msg")
	for pause := firstRetry; err == nil; pause = min(2*pause, lastRetry) {
		if err = s.send(ctx, endpoint, id, body); err == nil || errors.Is(err, errRefused) {
			break
		}
		s.opts.Logger.WarnContext(ctx, "a webhook did not accept a message", slog.String("message_id", id),
			slog.Any(telemetry.KeyError, err))
		err = s.opts.Wait(ctx, pause)
	}
	if err != nil && ctx.Err() == nil {
		s.opts.Logger.ErrorContext(ctx, "a webhook gets no message about a question",
			slog.String("question_id", e.Question.ID), slog.Any(telemetry.KeyError, err))
	}
	return err
}

// errRefused is returned if an endpoint will not accept a message later either.
var errRefused = errors.New("the endpoint refused the message")

// send makes one attempt.
func (s *Sender) send(ctx context.Context, endpoint Endpoint, id string, body []byte) error {
	ctx, stop := context.WithTimeout(ctx, requestTime)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	signature, err := sign(endpoint.Secret, id, now, body)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Airlock")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", now)
	request.Header.Set("Webhook-Signature", signature)
	response, err := s.opts.Client.Do(request)
	if err != nil {
		return errors.New("the endpoint could not be reached") // the cause has its URL, which may be a credential
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
	switch {
	case response.StatusCode < 300:
		return nil
	case response.StatusCode == http.StatusGone:
		return fmt.Errorf("%w: status 410", errRefused)
	}
	return fmt.Errorf("the endpoint answered with status %d", response.StatusCode)
}

// sign returns the signature of a message (Standard Webhooks, Signature scheme).
func sign(key secret.Value, id, timestamp string, body []byte) (string, error) {
	raw, err := Key(key)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, raw)
	fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// Key decodes the secret of an endpoint.
func Key(value secret.Value) ([]byte, error) {
	text, found := strings.CutPrefix(value.Reveal(), secretStart)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || len(raw) < minSecret {
		return nil, errors.New("the secret of a webhook must be whsec_ and at least 24 random bytes in base64")
	}
	return raw, nil
}
