// Package openai sends requests to HTTP endpoints that speak OpenAI's API and that an
// operator has named. Its errors are sentences without addresses and credentials, which
// any caller may read.
package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// ErrAddress is returned for an address that is not http:// or https:// and a host.
var ErrAddress = errors.New("the address is not http:// or https:// and a host")

// Endpoint takes requests about one thing, such as embeddings. It may be used concurrently.
type Endpoint struct {
	URL     *url.URL      // where requests go
	Key     secret.Value  // sent as a bearer token; empty sends none
	Timeout time.Duration // of one request
	Most    int64         // bytes of an answer
}

// At returns the address of a part of an API, such as "chat/completions", whose base,
// or the address of that part itself, is given. The error is ErrAddress.
func At(base, part string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, ErrAddress
	}
	if !strings.HasSuffix(u.Path, "/"+part) {
		u = u.JoinPath(part)
	}
	return u, nil
}

// client follows no redirect: it could lead the key and the question elsewhere.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: reach.NewTransport(reach.Configured(),
		func(t *http.Transport) { t.MaxIdleConnsPerHost, t.IdleConnTimeout = 4, time.Minute }),
}

// Post sends a question as JSON and returns the body of the answer.
func (e Endpoint) Post(ctx context.Context, question any) ([]byte, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, errors.New("the question cannot be written as JSON")
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("its address is not usable")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if key := e.Key.Reveal(); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, e.Silent(ctx)
		}
		return nil, errors.New("it cannot be reached") // the cause may have the address in it, and what it was given
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered with status %d", answer.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, e.Most+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, e.Silent(ctx)
	case err != nil:
		return nil, errors.New("its answer breaks off")
	case int64(len(raw)) > e.Most:
		return nil, fmt.Errorf("its answer has more than %d bytes", e.Most)
	}
	return raw, nil
}

// Silent returns the error for a request without an answer when ctx is done.
func (e Endpoint) Silent(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("the request was cancelled")
	}
	return fmt.Errorf("no answer within %s", e.Timeout)
}
