package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Exchanges reports whether users sign in at the identity provider, and their sign-ins are exchanged for tokens of the
// server.
func (c Config) Exchanges() bool {
	return c.Grant == TokenExchange || c.Grant == Enterprise && c.AssertionFile == ""
}

// checkExchange returns an error if the settings of the identity provider are invalid.
func (c Config) checkExchange() error {
	problem := ""
	switch isEnterprise := c.Grant == Enterprise; {
	case c.Delegate && (!c.Exchanges() || c.Provider.ClientKey.Reveal() == ""):
		problem = "delegate needs provider.clientKey, and the grant token_exchange or enterprise without assertionFile"
	case !isEnterprise && c.Grant != TokenExchange:
	case c.Provider.Issuer == "" || c.Provider.ClientID == "":
		problem = fmt.Sprintf("the grant %s needs provider.issuer and provider.clientId", c.Grant)
	case isEnterprise && c.ClientID == "":
		problem = "the grant enterprise needs clientId"
	case isEnterprise && c.Issuer == "" && c.AssertionFile == "":
		problem = "the grant enterprise needs issuer, or assertionFile"
	case c.Grant == TokenExchange && (c.AssertionFile != "" || c.ClientID != "" ||
		c.Issuer != "" && !sameIssuer(c.Issuer, c.Provider.Issuer)):
		problem = "the grant token_exchange has no clientId, issuer and assertionFile: the provider issues the token"
	case c.DPoP && c.Exchanges():
		problem = "exchanged tokens are not bound to a key: remove dpop"
	}
	if problem == "" {
		return nil
	}
	return fmt.Errorf("signing in to %q: %s", c.ServerID, problem)
}

// atProvider returns the configuration of the sign-in at the identity provider. With a secret, the key only signs actor
// tokens.
func (c Config) atProvider() Config {
	c.Issuer, c.Scopes = c.Provider.Issuer, []string{"openid"}
	c.Client = Client{ClientID: c.Provider.ClientID, ClientSecret: c.Provider.ClientSecret}
	if c.ClientSecret.Reveal() == "" {
		c.ClientKey = c.Provider.ClientKey
	}
	return c
}

// forExchange returns the configuration for the tokens of the server.
func (c Config) forExchange() Config {
	if c.Grant == TokenExchange {
		c.Issuer = c.Provider.Issuer
	}
	return c
}

// provider reads the metadata of the identity provider.
func (w *wire) provider(ctx context.Context, issuer string) (serverMetadata, error) {
	at, err := w.server(ctx, issuer)
	if errors.Is(err, errMissing) {
		err = fmt.Errorf("%s has no metadata", plain(issuer))
	}
	return at, err
}

// asserted are the claims of an ID token or of an Identity Assertion JWT Authorization Grant. Signatures are checked by
// the authorization server that gets the token; the tokens came straight from the identity provider.
type asserted struct {
	Issuer   string    `json:"iss"`
	Subject  string    `json:"sub"`
	Audience oneOrMore `json:"aud"`
	Expires  float64   `json:"exp"`
	Nonce    string    `json:"nonce"`
	ClientID string    `json:"client_id"`
	Resource oneOrMore `json:"resource"`
	Act      struct {
		Subject string `json:"sub"`
	} `json:"act"`
}

// oneOrMore is a text or a list of texts (RFC 7519, section 4.1.3).
type oneOrMore []string

// UnmarshalJSON reads both forms.
func (o *oneOrMore) UnmarshalJSON(raw []byte) error {
	var one string
	if strictjson.UnmarshalOpen(raw, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	var more []string
	err := strictjson.UnmarshalOpen(raw, &more)
	*o = more
	return err
}

var _ json.Unmarshaler = (*oneOrMore)(nil)

// readClaims reads the claims of a JWT, without a check of its signature.
func readClaims(token string, into any) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errors.New("the token is not a JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = strictjson.UnmarshalOpen(raw, into)
	}
	if err != nil {
		err = errors.New("the token is not a JWT that can be read") // without its text
	}
	return err
}

// checkGrant returns an error if a grant of the identity provider is for something else than found.
func (s *Source) checkGrant(grant string, found discovered, delegated bool) error {
	var claims asserted
	err := readClaims(grant, &claims)
	isAudience := func(a string) bool { return sameIssuer(a, found.server.Issuer) }
	isResource := func(r string) bool { return trimmed(r) == trimmed(found.resource.Resource) }
	switch {
	case err != nil:
		return err
	case !sameIssuer(claims.Issuer, s.config.Provider.Issuer):
		return errors.New("its grant names another issuer")
	case len(claims.Audience) != 1 || !isAudience(claims.Audience[0]):
		return errors.New("its grant is for another authorization server")
	case claims.ClientID != s.target.ClientID:
		return errors.New("its grant is for another client")
	case len(claims.Resource) > 0 && !slices.ContainsFunc(claims.Resource, isResource):
		return errors.New("its grant is for another server")
	case claims.Subject == "":
		return errors.New("its grant names nobody")
	case delegated && claims.Act.Subject == "":
		return errors.New("its grant does not name who acts for the user")
	}
	return nil
}

// identify checks the ID token of a sign-in at the identity provider, and stores it in r. nonce is empty for a renewed
// one (OpenID Connect Core 1.0, sections 3.1.3.7 and 12.2).
func (s *Source) identify(r *record, got issued, nonce string) error {
	if got.ID == "" && nonce == "" && s.config.Grant == TokenExchange {
		return nil // its access token is exchanged, and is that of the same person
	}
	var claims asserted
	err := readClaims(got.ID, &claims)
	expires := time.Unix(int64(claims.Expires), 0)
	issuer, own, isOwn := strings.Cut(s.opts.Principal, "#") // as of caller.Caller.Name
	switch {
	case got.ID == "":
		return errors.New("the identity provider issued no ID token")
	case err != nil:
		return fmt.Errorf("the ID token: %w", err)
	case !sameIssuer(claims.Issuer, s.config.Issuer):
		return errors.New("the ID token names another issuer")
	case !slices.Contains(claims.Audience, s.config.ClientID):
		return errors.New("the ID token is for another client")
	case !s.opts.Now().Before(expires):
		return errors.New("the ID token has expired")
	case nonce != "" && claims.Nonce != nonce:
		return errors.New("the ID token belongs to another sign-in")
	case claims.Subject == "" || nonce == "" && claims.Subject != r.Subject:
		return errors.New("the ID token is that of another person")
	case isOwn && sameIssuer(issuer, claims.Issuer) && own != claims.Subject:
		return errors.New("the person who signed in is not the one whom the sign-in is for")
	}
	s.hold(got.ID)
	r.Subject, r.Tokens.ID = claims.Subject, got.ID
	if s.config.Grant == Enterprise {
		r.Tokens.Expires = expires
	}
	return nil
}
