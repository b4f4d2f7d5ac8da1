package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	discovery "github.com/zitadel/oidc/v3/pkg/client"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Parameters of the Identity Assertion JWT Authorization Grant.
const (
	tokenIDJAG  = "urn:ietf:params:oauth:token-type:id-jag"
	typeIDJAG   = "oauth-id-jag+jwt"
	grantJWT    = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantsTaken = 5 * time.Minute
)

// exchanger exchanges tokens (RFC 8693) as an identity provider, and takes the grants of another one as an
// authorization server (RFC 7523). The library checks clients, subject tokens and PKCE, and issues access tokens; it
// does not know ID-JAG.
type exchanger struct {
	store   *store
	next    http.Handler
	issuer  string
	trusted string // the identity provider whose grants are taken; empty for none

	mu      sync.Mutex
	used    map[string]bool           // grants by their IDs
	granted map[string]map[string]any // claims by the access tokens
}

func newExchanger(s *store, next http.Handler, issuer, trusted string) *exchanger {
	return &exchanger{store: s, next: next, issuer: issuer, trusted: trusted, used: map[string]bool{},
		granted: map[string]map[string]any{}}
}

// ServeHTTP handles exchanges, and passes other requests on.
func (e *exchanger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/granted" { // the claims of an access token, for tests
		e.mu.Lock()
		claims := e.granted[r.URL.Query().Get("token")]
		e.mu.Unlock()
		if claims == nil {
			http.NotFound(w, r)
			return
		}
		answer(w, http.StatusOK, claims)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/oauth/token" {
		e.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	form, formErr := url.ParseQuery(string(body))
	if err != nil || formErr != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	switch kind := oidc.GrantType(form.Get("grant_type")); {
	case kind == oidc.GrantTypeTokenExchange:
		e.exchange(w, r, form)
	case kind == grantJWT && e.trusted != "":
		e.take(w, r, form)
	default:
		e.next.ServeHTTP(w, withForm(r, form))
	}
}

func answer(w http.ResponseWriter, status int, document map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(document)
}

func withForm(r *http.Request, form url.Values) *http.Request {
	body := form.Encode()
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader([]byte(body))), int64(len(body))
	return r
}

// exchange passes an exchange on to the library. A grant is made of the ID token that the library
// issues.
func (e *exchanger) exchange(w http.ResponseWriter, r *http.Request, form url.Values) {
	isGrant := form.Get("requested_token_type") == tokenIDJAG
	inner := url.Values{}
	for name, values := range form {
		inner[name] = values
	}
	if isGrant {
		inner.Set("requested_token_type", string(oidc.IDTokenType))
	} else {
		inner["audience"] = form["resource"]
	}
	answered := httptest.NewRecorder()
	e.next.ServeHTTP(answered, withForm(r, inner))
	var issued map[string]any
	if err := json.Unmarshal(answered.Body.Bytes(), &issued); err != nil {
		answer(w, http.StatusInternalServerError, map[string]any{"error": "server_error"})
		return
	}
	if token, _ := issued["access_token"].(string); isGrant && answered.Code == http.StatusOK {
		grant, err := e.grant(token, form)
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_target"})
			return
		}
		issued["access_token"], issued["issued_token_type"], issued["token_type"] = grant, tokenIDJAG, "N_A"
	}
	answer(w, answered.Code, issued)
}

// grant signs the claims of an ID token as a grant for an authorization server.
func (e *exchanger) grant(idToken string, form url.Values) (string, error) {
	signed, err := jose.ParseSigned(idToken, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return "", err
	}
	var of map[string]any
	if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &of); err != nil {
		return "", err
	}
	if form.Get("audience") == "" {
		return "", errors.New("no audience")
	}
	claims := map[string]any{"iss": e.issuer, "sub": of["sub"], "aud": form.Get("audience"), "client_id": "airlock",
		"resource": form.Get("resource"), "scope": form.Get("scope"), "jti": uuid.NewString(), "iat": time.Now().Unix(),
		"exp": time.Now().Add(grantsTaken).Unix()}
	if of["act"] != nil {
		claims["act"] = of["act"]
	}
	e.store.mu.Lock()
	key := e.store.keys[len(e.store.keys)-1]
	for name, value := range e.store.wrong {
		claims[name] = value
	}
	e.store.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key.key, KeyID: key.id}},
		(&jose.SignerOptions{}).WithType(typeIDJAG))
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	made, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return made.CompactSerialize()
}

// take issues an access token for a grant of the trusted identity provider, once.
func (e *exchanger) take(w http.ResponseWriter, r *http.Request, form url.Values) {
	id, secret, ok := r.BasicAuth()
	if !ok || e.store.AuthorizeClientIDSecret(r.Context(), id, secret) != nil {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	claims, err := e.verified(r.Context(), form.Get("assertion"), id)
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": err.Error()})
		return
	}
	token := uuid.NewString()
	e.mu.Lock()
	e.granted[token] = claims
	e.mu.Unlock()
	e.store.mu.Lock()
	lifetime := e.store.lifetime
	e.store.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "Bearer",
		"expires_in": int(lifetime.Seconds()), "scope": claims["scope"]})
}

// verified checks a grant.
func (e *exchanger) verified(ctx context.Context, grant, clientID string) (map[string]any, error) {
	signed, err := jose.ParseSigned(grant, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return nil, err
	}
	at, err := discovery.Discover(ctx, e.trusted, http.DefaultClient)
	if err != nil {
		return nil, err
	}
	payload, err := rp.NewRemoteKeySet(http.DefaultClient, at.JwksURI).VerifySignature(ctx, signed)
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, err
	}
	expires, _ := claims["exp"].(float64)
	jti, _ := claims["jti"].(string)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch typ, _ := signed.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string); {
	case typ != typeIDJAG:
		return nil, errors.New("typ")
	case claims["iss"] != e.trusted, claims["aud"] != e.issuer, claims["client_id"] != clientID:
		return nil, errors.New("iss, aud or client_id")
	case time.Now().Unix() >= int64(expires), jti == "", e.used[jti]:
		return nil, errors.New("exp or jti")
	}
	e.used[jti] = true
	return claims, nil
}

// ValidateTokenExchangeRequest refuses ID tokens of other clients.
func (s *store) ValidateTokenExchangeRequest(_ context.Context, r op.TokenExchangeRequest) error {
	if r.GetExchangeSubjectTokenType() != oidc.IDTokenType {
		return nil
	}
	audience, _ := r.GetExchangeSubjectTokenClaims()["aud"].([]any)
	if one, ok := r.GetExchangeSubjectTokenClaims()["aud"].(string); ok {
		audience = []any{one}
	}
	if !slices.Contains(audience, any(r.GetClientID())) {
		return oidc.ErrInvalidRequest().WithDescription("the subject token is for another client")
	}
	return nil
}

// GetPrivateClaimsFromTokenExchangeRequest returns the claims of an exchanged access token.
func (s *store) GetPrivateClaimsFromTokenExchangeRequest(_ context.Context, r op.TokenExchangeRequest) (map[string]any,
	error) {
	claims := map[string]any{"scope": strings.Join(r.GetScopes(), " ")}
	if act := actorOf(r); act != nil {
		claims["act"] = act
	}
	return claims, nil
}

// SetUserinfoFromTokenExchangeRequest adds the person, and who acts, to an exchanged ID token.
func (s *store) SetUserinfoFromTokenExchangeRequest(_ context.Context, info *oidc.UserInfo,
	r op.TokenExchangeRequest) error {
	info.Subject = r.GetSubject()
	if act := actorOf(r); act != nil {
		info.AppendClaims("act", act)
	}
	return nil
}

// actorOf returns the claim act: the actor of the actor token, and through whom it acts.
func actorOf(r op.TokenExchangeRequest) map[string]any {
	if r.GetExchangeActor() == "" {
		return nil
	}
	act := map[string]any{}
	for _, name := range []string{"sub", "kind", "act"} {
		if value := r.GetExchangeActorTokenClaims()[name]; value != nil {
			act[name] = value
		}
	}
	return act
}

// VerifyExchangeSubjectToken takes no further subject tokens.
func (s *store) VerifyExchangeSubjectToken(context.Context, string, oidc.TokenType) (string, string, map[string]any,
	error) {
	return "", "", nil, errors.New("the subject token is not valid")
}

// VerifyExchangeActorToken takes JWTs that are signed with the configured key of a client.
func (s *store) VerifyExchangeActorToken(_ context.Context, token string, _ oidc.TokenType) (string, string,
	map[string]any, error) {
	signed, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || s.actors == nil {
		return "", "", nil, fmt.Errorf("the actor token is not valid: %v", err)
	}
	payload, err := signed.Verify(s.actors)
	if err != nil {
		return "", "", nil, err
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", "", nil, err
	}
	expires, _ := claims["exp"].(float64)
	actor, _ := claims["sub"].(string)
	if claims["aud"] != s.issuer || time.Now().Unix() >= int64(expires) || actor == "" {
		return "", "", nil, errors.New("aud, exp or sub")
	}
	return token, actor, claims, nil
}
