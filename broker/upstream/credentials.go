package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Credentials sign the requests to one server that is reached by URL. They stand in the
// place of an Authorization header in Config.Headers. Their methods may be called
// concurrently; an error is a *SignInError, or means that ctx has ended.
type Credentials interface {
	// Sign adds what the server wants to a request that goes to the server's origin.
	Sign(ctx context.Context, request *http.Request) error
	// Refused hears of an answer with status 401 or 403, and says whether the request,
	// signed again, may be accepted. An error says what a person has to do first. It
	// leaves the answer's body alone.
	Refused(ctx context.Context, request *http.Request, response *http.Response) (again bool, err error)
}

// SignInError means that a server takes no requests until someone signs in, or that the
// sign-in cannot be used now.
type SignInError struct {
	ServerID string
	Why      string // a sentence about "it", the server: its user has not signed in
	Command  string // that signs in; empty where no person can
	// Temporary means that the same may succeed later without anybody doing anything.
	Temporary bool
}

// Error names the server and the reason.
func (e *SignInError) Error() string { return fmt.Sprintf("signing in to %q: %s", e.ServerID, e.Why) }

// problem is one sentence about "it", for people and models alike.
func (e *SignInError) problem() string {
	if e.Command == "" {
		return e.Why
	}
	return fmt.Sprintf("%s; the user signs in with `%s`", e.Why, e.Command)
}

// message is what the code of a failed call is told.
func (e *SignInError) message() string {
	text := "the server could not be called: " + e.Why
	if e.Command != "" {
		text += fmt.Sprintf(". Tell the user to run `%s` in a terminal, then make the call again", e.Command)
	}
	return text
}

// maxSigned is how often one request is signed: at first, with a new token, and with a
// nonce.
const maxSigned = 3

// signed sends a request with the credentials of the server. A refusal that a person has
// to correct comes back as an answer with status 401, as the server gave it or would give
// it, and is noted for the call that it belongs to.
func (w *httpWire) signed(request *http.Request) (*http.Response, error) {
	if w.config.Credentials == nil || !w.isOrigin(request.URL) {
		return w.base.RoundTrip(request)
	}
	for attempt := 1; ; attempt++ {
		if err := w.config.Credentials.Sign(request.Context(), request); err != nil {
			return w.unsigned(request, err)
		}
		response, err := w.base.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
			if response.StatusCode < 400 { // what follows a refusal of server/discover says nothing
				w.noteSigned()
			}
			return response, nil
		}
		again, err := w.config.Credentials.Refused(request.Context(), request, response)
		switch {
		case err != nil && request.Context().Err() != nil:
			response.Body.Close()
			return nil, err
		case err != nil:
			w.noteSignIn(request, err)
			return response, nil
		case !again || attempt == maxSigned || request.Body != nil && request.GetBody == nil:
			return response, nil
		}
		response.Body.Close()
		request = request.Clone(request.Context())
		if request.GetBody != nil {
			if request.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// unsigned is the answer to a request that was not sent, because it cannot be signed.
func (w *httpWire) unsigned(request *http.Request, err error) (*http.Response, error) {
	if request.Body != nil {
		request.Body.Close()
	}
	if request.Context().Err() != nil {
		return nil, err
	}
	w.noteSignIn(request, err)
	return &http.Response{
		Status: "401 Unauthorized", StatusCode: http.StatusUnauthorized, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: request,
	}, nil
}

func (w *httpWire) noteSignIn(request *http.Request, err error) {
	var needed *SignInError
	if !errors.As(err, &needed) {
		needed = &SignInError{ServerID: w.config.ID, Why: "its sign-in cannot be used: " + strings.TrimSpace(err.Error())}
	}
	w.mu.Lock()
	w.needed = needed
	w.mu.Unlock()
	exchangeOf(request.Context()).note(func(a *answer) { a.needed = needed })
}

// noteSigned forgets what was needed before.
func (w *httpWire) noteSigned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.needed = nil
}

// needsSignIn is a call that has to wait for its user.
func (s *server) needsSignIn(name string, e *SignInError) *CallError {
	kind := ToolError
	if e.Temporary {
		kind = TransientNetwork
	}
	return s.failure(name, kind, e.message(), e.Temporary, e)
}
