package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// metadataFresh is how long the metadata of an OpenID provider are used.
const metadataFresh = 5 * time.Minute

// OpenID is Airlock as a client of the OpenID provider at which people sign in to its own pages. Its methods are safe
// for concurrent use. The fields must not be changed after the first call.
type OpenID struct {
	Issuer   string
	ClientID string
	Secret   secret.Value // empty for a public client
	Scopes   []string     // to request beside openid
	Redirect string       // the exact redirect URI
	Hold     func(credential string)
	Now      func() time.Time

	mu   sync.Mutex // guards the fields below
	at   serverMetadata
	read time.Time
}

// Consent is one sign-in that a user has begun. If it was begun in a browser, that browser keeps it, encrypted.
type Consent struct {
	State    string `json:"state"`
	Verifier string `json:"verifier"` // of PKCE (RFC 7636)
	// Nonce is that of the requested ID token (OpenID Connect Core 1.0, section 3.1.2.1), or empty.
	Nonce  string `json:"nonce"`
	Issuer string `json:"issuer"`
	Sends  bool   `json:"sends,omitempty"` // the server declares that its answers name the issuer (RFC 9207)
}

// Identity is the answer of an OpenID provider. The ID token is not verified yet.
type Identity struct {
	Token secret.Value
	Info  map[string]json.RawMessage // of the userinfo endpoint; nil if the provider has none
}

// Begin returns the address that the browser opens, and the sign-in that its answer belongs to.
func (o *OpenID) Begin(ctx context.Context) (address string, c Consent, err error) {
	w := o.wire()
	defer w.close()
	at, err := o.metadata(ctx, w)
	if err != nil {
		return "", Consent{}, err
	}
	if len(at.ChallengeKinds) > 0 && !slices.Contains(at.ChallengeKinds, "S256") {
		return "", Consent{}, fmt.Errorf("the OpenID provider %s does not offer PKCE with S256", plain(o.Issuer))
	}
	request := newAuthorization(o.Redirect, at)
	request.Nonce = randomText()
	address, err = request.address(at, o.ClientID, "", union([]string{"openid"}, o.Scopes))
	return address, request.Consent, err
}

// Finish exchanges the code of an answer. The error is a *DeniedError if the person or the provider refused.
func (o *OpenID) Finish(ctx context.Context, c Consent, answer url.Values) (Identity, error) {
	if c.Issuer == "" || !sameIssuer(c.Issuer, o.Issuer) { // it was configured anew
		return Identity{}, errForeign
	}
	code, err := authorization{c, o.Redirect}.code(answer)
	if err != nil {
		return Identity{}, err
	}
	o.Hold(code)
	w := o.wire()
	defer w.close()
	at, err := o.metadata(ctx, w)
	if err != nil {
		return Identity{}, err
	}
	client := registration{ID: o.ClientID, Secret: o.Secret.Reveal(), Method: methodFor(at.AuthMethods,
		o.Secret.Reveal() != "", false)}
	got, err := requester{wire: w, endpoint: at.Token, client: client, now: o.Now}.ask(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {c.Verifier},
		"redirect_uri": {o.Redirect},
	})
	if err != nil {
		return Identity{}, err
	}
	for _, credential := range []string{got.Access, got.Refresh, got.ID} {
		if credential != "" {
			o.Hold(credential)
		}
	}
	found := Identity{Token: secret.New(got.ID)}
	if got.ID == "" {
		return found, errors.New("the OpenID provider issued no ID token")
	}
	if at.UserInfo == "" {
		return found, nil
	}
	// Without it, groups may be missing that a rule forbids something.
	if err := w.userInfo(ctx, at.UserInfo, got.Access, &found.Info); err != nil {
		return found, fmt.Errorf("reading the claims of the person: %w", err)
	}
	return found, nil
}

func (o *OpenID) wire() *wire {
	dialer := &reach.Dialer{}
	if u, err := url.Parse(o.Issuer); err == nil {
		dialer.Named = []string{u.Hostname()}
	}
	return newWire(dialer)
}

// metadata reads the metadata of the provider, at most once at a time and once in metadataFresh.
func (o *OpenID) metadata(ctx context.Context, w *wire) (serverMetadata, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.read.IsZero() && o.Now().Sub(o.read) < metadataFresh {
		return o.at, nil
	}
	at, err := w.server(ctx, o.Issuer)
	switch {
	case errors.Is(err, errMissing):
		return at, fmt.Errorf("the OpenID provider %s has no metadata", plain(o.Issuer))
	case err == nil && at.Authorization == "":
		return at, fmt.Errorf("the OpenID provider %s names no authorization endpoint", plain(o.Issuer))
	case err == nil:
		o.at, o.read = at, o.Now()
	}
	return at, err
}
