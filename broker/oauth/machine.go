package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"github.com/airlock-mcp/airlock/internal/store"
)

// maxAssertion bounds the file with a JWT, in bytes.
const maxAssertion = 64 << 10

// machine gets a token without a person (MCP extensions OAuth Client Credentials,
// Workload Identity Federation and Enterprise-Managed Authorization).
func (s *Source) machine(ctx context.Context, w *wire, found discovered, scopes []string) (*record, error) {
	client, err := w.register(ctx, s.config, found.server, "", registration{}, s.opts.Now())
	if err != nil {
		return nil, err
	}
	r, key, err := s.record(found, client)
	if err != nil {
		return nil, err
	}
	return r, s.obtain(ctx, w, r, key, scopes)
}

// obtain fills the tokens of r.
func (s *Source) obtain(ctx context.Context, w *wire, r *record, dpop *signer, scopes []string) error {
	form, err := s.machineForm(ctx, w, r)
	if err != nil {
		return err
	}
	if len(scopes) > 0 {
		form.Set("scope", words(scopes))
	}
	got, err := s.requester(w, r, dpop).ask(ctx, form)
	if err != nil {
		return err
	}
	r.Tokens = got.tokens(s.opts.Now(), scopes, "")
	r.Tokens.Refresh = "" // another one is had in the same way
	r.Wanted, r.Over = nil, ""
	return nil
}

// machineForm is the request of the configured grant.
func (s *Source) machineForm(ctx context.Context, w *wire, r *record) (url.Values, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {r.Resource}}
	if s.config.Grant == ClientCredentials {
		return form, nil
	}
	assertion, err := s.assertion()
	if err != nil {
		return nil, err
	}
	if s.config.Grant == Enterprise {
		subject := subject{kind: tokenID, token: assertion}
		if assertion, err = s.grant(ctx, w, discovered{resourceMetadata{Resource: r.Resource},
			serverMetadata{Issuer: r.Issuer}}, subject, nil, nil); err != nil {
			return nil, err
		}
	}
	form.Set("grant_type", grantJWT)
	form.Set("assertion", assertion)
	return form, nil
}

// assertion reads the JWT that vouches for Airlock.
func (s *Source) assertion() (string, error) {
	file, err := store.Open(s.config.AssertionFile)
	if err != nil {
		return "", fmt.Errorf("reading assertionFile: %w", withoutPath(err))
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxAssertion+1))
	text := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading assertionFile: %w", withoutPath(err))
	case len(raw) > maxAssertion || strings.Count(text, ".") != 2:
		return "", errors.New("reading assertionFile: it does not have a JWT")
	}
	s.hold(text)
	return text, nil
}

// withoutPath leaves the path out of an error: a model reads it.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
