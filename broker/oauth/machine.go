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
		if assertion, err = s.exchange(ctx, w, r, assertion); err != nil {
			return nil, fmt.Errorf("the identity provider: %w", err)
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
		return "", errors.New("reading assertionFile: it holds no JWT")
	}
	s.hold(text)
	return text, nil
}

// withoutPath leaves the path out of an error: a model reads it.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// exchange has the identity provider turn the user's ID token into a grant for the
// authorization server (RFC 8693; Identity Assertion Authorization Grant).
func (s *Source) exchange(ctx context.Context, w *wire, r *record, idToken string) (string, error) {
	provider, err := w.server(ctx, s.config.Provider.Issuer)
	if errors.Is(err, errMissing) {
		err = fmt.Errorf("%s has no metadata", plain(s.config.Provider.Issuer))
	}
	if err != nil {
		return "", err
	}
	secret := s.config.Provider.ClientSecret.Reveal()
	asker := requester{wire: w, endpoint: provider.Token, now: s.opts.Now, client: registration{
		Issuer: provider.Issuer, ID: s.config.Provider.ClientID, Secret: secret,
		Method: methodFor(provider.AuthMethods, secret != "", false),
	}}
	got, err := asker.ask(ctx, url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {tokenIDJAG}, "subject_token": {idToken},
		"subject_token_type": {tokenID},
		"audience":           {r.Issuer}, "resource": {r.Resource},
	})
	if err == nil && got.Kind != tokenIDJAG {
		err = errors.New("it answered with a token of another type than was asked for")
	}
	s.hold(got.Access)
	return got.Access, err
}
