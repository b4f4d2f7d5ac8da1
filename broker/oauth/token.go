package oauth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// The ways in which a client proves who it is at the token endpoint (OpenID Connect
// Core 1.0, section 9).
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
	authKey   = "private_key_jwt"
)

// Types of assertions and tokens (RFC 7523, section 2; RFC 8693, section 3; Identity
// Assertion Authorization Grant).
const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	grantJWT      = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	tokenID       = "urn:ietf:params:oauth:token-type:id_token"
	tokenAccess   = "urn:ietf:params:oauth:token-type:access_token"
	tokenJWT      = "urn:ietf:params:oauth:token-type:jwt"
	tokenIDJAG    = "urn:ietf:params:oauth:token-type:id-jag"
)

// refusal is an error of the token endpoint (RFC 6749, section 5.2).
type refusal struct {
	Code   string `json:"error"`
	status int
}

// Error shows the code alone: descriptions are free texts of others.
func (e *refusal) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the authorization server answered with HTTP %d", e.status)
	}
	return "the authorization server answered " + quote(e.Code)
}

// isTemporary reports whether the same request may succeed later.
func (e *refusal) isTemporary() bool {
	return e.status >= 500 || e.status == http.StatusTooManyRequests || e.Code == "temporarily_unavailable" ||
		e.Code == "server_error"
}

// isFinal reports whether the authorization server itself, and not a proxy in front of it, has
// refused the request for good.
func (e *refusal) isFinal() bool { return e.Code != "" && e.status < 500 && !e.isTemporary() }

// issued is an answer of the token endpoint (RFC 6749, section 5.1).
type issued struct {
	Access  string  `json:"access_token"`
	Type    string  `json:"token_type"`
	Expires float64 `json:"expires_in"`
	Refresh string  `json:"refresh_token"`
	Scope   *string `json:"scope"`
	Kind    string  `json:"issued_token_type"`
	ID      string  `json:"id_token"`
}

// requester asks one token endpoint for tokens.
type requester struct {
	wire     *wire
	endpoint string
	client   registration
	key      *signer // of the client, for private_key_jwt
	dpop     *signer // nil for bearer tokens
	now      func() time.Time
}

// ask sends a request for tokens. A nonce that the server wants for the DPoP proof is
// used at once (RFC 9449, section 8).
func (r requester) ask(ctx context.Context, form url.Values) (issued, error) {
	nonce := ""
	for {
		header, err := r.authenticate(form)
		if err != nil {
			return issued{}, err
		}
		if r.dpop != nil {
			proof, err := r.dpop.proof(http.MethodPost, r.endpoint, "", nonce, r.now())
			if err != nil {
				return issued{}, err
			}
			header.Set("DPoP", proof)
		}
		status, answered, body, err := r.wire.post(ctx, r.endpoint, form, header)
		if err != nil {
			return issued{}, err
		}
		refused := &refusal{status: status}
		strictjson.UnmarshalOpen(body, refused) // without a code if it cannot be read
		if status == http.StatusOK && refused.Code == "" {
			return r.accept(body)
		}
		if refused.Code == "use_dpop_nonce" && nonce == "" && r.dpop != nil && nonceOf(answered) != "" {
			nonce = nonceOf(answered)
			continue
		}
		return issued{}, refused
	}
}

// accept reads a good answer.
func (r requester) accept(body []byte) (issued, error) {
	var got issued
	want := "bearer"
	if r.dpop != nil {
		want = "dpop"
	}
	switch {
	case strictjson.UnmarshalOpen(body, &got) != nil || got.Access == "":
		return issued{}, errors.New("the authorization server answered with something other than a token")
	case got.Kind == tokenIDJAG: // its type is N_A
	case !strings.EqualFold(got.Type, want):
		return issued{}, fmt.Errorf("the authorization server issued a token of the type %s, and not %s",
			quote(got.Type), want)
	}
	if strings.ContainsFunc(got.Access, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return issued{}, errors.New("the authorization server issued a token that HTTP cannot carry")
	}
	return got, nil
}

// authenticate adds the client's credentials to the form, or to the headers that it returns.
func (r requester) authenticate(form url.Values) (http.Header, error) {
	header := http.Header{}
	switch r.client.Method {
	case authBasic: // RFC 6749, section 2.3.1
		request := http.Request{Header: header}
		request.SetBasicAuth(url.QueryEscape(r.client.ID), url.QueryEscape(r.client.Secret))
		return header, nil
	case authPost:
		form.Set("client_secret", r.client.Secret)
	case authKey:
		if r.key == nil {
			return nil, errors.New("there is no key to sign with")
		}
		now := r.now()
		// The issuer is the audience (RFC 7523bis), not one of its endpoints.
		assertion, err := r.key.sign(map[string]any{"typ": "JWT"}, map[string]any{
			"iss": r.client.ID, "sub": r.client.ID, "aud": r.client.Issuer, "jti": newID(), "iat": now.Unix(),
			"exp": now.Add(time.Minute).Unix(),
		})
		if err != nil {
			return nil, err
		}
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	}
	form.Set("client_id", r.client.ID)
	return header, nil
}

// tokens returns what an answer means. asked are the scopes of the request, which the
// answer names only if it grants others (RFC 6749, section 5.1).
func (i issued) tokens(now time.Time, asked []string, refresh string) tokens {
	t := tokens{Access: i.Access, Refresh: i.Refresh, Issued: now, Scopes: asked}
	if i.Scope != nil {
		t.Scopes = scopesOf(*i.Scope)
	}
	if t.Refresh == "" {
		t.Refresh = refresh
	}
	if i.Expires > 0 {
		t.Expires = now.Add(time.Duration(min(i.Expires, math.MaxInt32)) * time.Second)
	}
	return t
}

// methodFor chooses how a client proves who it is. offered is what the server takes;
// none named means client_secret_basic (RFC 8414, section 2).
func methodFor(offered []string, hasSecret, hasKey bool) string {
	if len(offered) == 0 {
		offered = []string{authBasic}
	}
	switch {
	case hasKey:
		return authKey
	case !hasSecret:
		return authNone
	case !slices.Contains(offered, authBasic) && slices.Contains(offered, authPost):
		return authPost
	}
	return authBasic
}
