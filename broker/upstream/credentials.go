package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Credentials are the sign-ins of one principal to one server that is reached by URL. They take the place of an
// Authorization header in Config.Headers. Its methods are safe for concurrent use.
type Credentials interface {
	// Bind returns the signer of one new connection. It signs with the sign-in that is in force now, which may
	// be none, and with what that sign-in is refreshed to. It never signs with a later sign-in.
	Bind() Signer
	// Ready waits until the requests of a new connection can be signed: a token may have to be refreshed first, maybe
	// by another process. An error is a *SignInError, or means that ctx has ended.
	Ready(ctx context.Context) error
}

// Signer signs the requests of one connection. Its methods are safe for concurrent use. An error is a *SignInError,
// or means that ctx has ended.
type Signer interface {
	// Sign adds the credential to a request to the server's origin.
	Sign(ctx context.Context, request *http.Request) error
	// Refused is called for a response with status 401 or 403. It reports whether the request may be accepted
	// if it is signed again. An error describes what a person has to do first. It does not read the body.
	Refused(ctx context.Context, request *http.Request, response *http.Response) (again bool, err error)
	// Changed reports whether the sign-in has been replaced or has ended since Bind. The connection is then not used
	// for new calls.
	Changed() bool
}

// SignInError is returned if a server accepts no requests until someone signs in, or if the sign-in cannot be used now.
type SignInError struct {
	ServerID string
	Why      string // a sentence about "it", the server: its user has not signed in
	Command  string // that signs in; empty if no person can
	// Temporary means that the same may succeed later without anybody doing anything.
	Temporary bool
}

// Error names the server and the reason.
func (e *SignInError) Error() string { return fmt.Sprintf("signing in to %q: %s", e.ServerID, e.Why) }

// problem returns one sentence about "it", the server, for people and models.
func (e *SignInError) problem() string {
	if e.Command == "" {
		return e.Why
	}
	return fmt.Sprintf("%s; the user signs in with `%s`", e.Why, e.Command)
}

// message returns the error message for the code whose call failed.
func (e *SignInError) message() string {
	text := "the server could not be called: " + e.Why
	if e.Command != "" {
		text += fmt.Sprintf(". Tell the user to run `%s` in a terminal, then make the call again", e.Command)
	}
	return text
}

// maxSigned is how often one request is signed: first, with a new token, and with a nonce.
const maxSigned = 3

// signed sends a request with the credentials of this connection. If a person has to sign in first, signed returns the
// server's 401, or makes one if nothing was sent, and notes the reason for the call.
func (w *httpWire) signed(request *http.Request) (*http.Response, error) {
	if w.signer == nil || !w.isOrigin(request.URL) {
		return w.base.RoundTrip(request)
	}
	for attempt := 1; ; attempt++ {
		if err := w.signer.Sign(request.Context(), request); err != nil {
			return w.unsigned(request, err)
		}
		response, err := w.base.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
			if response.StatusCode < 400 { // an error after server/discover does not prove that the sign-in works
				w.noteSigned()
			}
			return response, nil
		}
		again, err := w.signer.Refused(request.Context(), request, response)
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

// unsigned returns the response to a request that was not sent because it cannot be signed.
func (w *httpWire) unsigned(request *http.Request, err error) (*http.Response, error) {
	if request.Body != nil {
		request.Body.Close()
	}
	if request.Context().Err() != nil {
		return nil, err
	}
	w.noteSignIn(request, err)
	return &http.Response{
		Status: "401 Unauthorized", StatusCode: http.StatusUnauthorized, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{}, Body: http.NoBody, Request: request,
	}, nil
}

func (w *httpWire) noteSignIn(request *http.Request, err error) {
	var needed *SignInError
	if !errors.As(err, &needed) {
		needed = &SignInError{ServerID: w.config.ID,
			Why: "its sign-in cannot be used: " + strings.TrimSpace(err.Error())}
	}
	w.mu.Lock()
	w.needed = needed
	w.mu.Unlock()
	exchangeOf(request.Context()).note(func(a *answer) { a.needed = needed })
}

// noteSigned clears the last SignInError.
func (w *httpWire) noteSigned() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.needed = nil
}

// CallError returns the error of a call that was not carried out because of e.
func (e *SignInError) CallError(name string) *CallError {
	kind := ToolError
	if e.Temporary {
		kind = TransientNetwork
	}
	return &CallError{ServerID: e.ServerID, ToolName: name, Type: kind, Message: e.message(), Retryable: e.Temporary,
		cause: e}
}
