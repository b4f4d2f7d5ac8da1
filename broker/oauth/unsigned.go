package oauth

import (
	"context"
	"net/http"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// Unsigned returns credentials that sign nothing, also when there is a sign-in. If the server answers 401, the request
// fails with a *upstream.SignInError.
func (s *Source) Unsigned() upstream.Credentials { return unsigned{s} }

type unsigned struct{ source *Source }

// Bind implements upstream.Credentials.
func (u unsigned) Bind() upstream.Signer { return u }

// Ready implements upstream.Credentials.
func (unsigned) Ready(context.Context) error { return nil }

// Sign implements upstream.Signer.
func (unsigned) Sign(context.Context, *http.Request) error { return nil }

// Refused implements upstream.Signer. It remembers the challenge for Login.
func (u unsigned) Refused(_ context.Context, _ *http.Request, response *http.Response) (bool, error) {
	u.source.remember(challengeOf(response.Header))
	if response.StatusCode == http.StatusForbidden && challengeOf(response.Header).Scheme == "" {
		return false, nil // a sign-in would not help
	}
	return false, u.source.NotSignedIn()
}

// Changed implements upstream.Signer.
func (unsigned) Changed() bool { return false }

// NotSignedIn returns the error for a call of the principal before it has signed in.
func (s *Source) NotSignedIn() *upstream.SignInError { return s.problem(whyNever, nil) }
