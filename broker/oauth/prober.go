package oauth

import (
	"context"
	"net/http"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// Prober returns credentials that sign nothing: a connection with them ends with a
// *upstream.SignInError where the server wants a sign-in, and tells the source what the
// server wants, for Login.
func (s *Source) Prober() upstream.Credentials { return prober{s} }

type prober struct{ source *Source }

// Sign implements upstream.Credentials.
func (prober) Sign(context.Context, *http.Request) error { return nil }

// Refused implements upstream.Credentials.
func (p prober) Refused(_ context.Context, _ *http.Request, response *http.Response) (bool, error) {
	p.source.remember(challengeOf(response.Header))
	return false, p.source.problem(whyNever, nil)
}
