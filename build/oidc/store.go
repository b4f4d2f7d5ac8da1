package main

import (
	"context"
	"crypto"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// store is the library's example, with key rotation, an adjustable clock, custom scopes, and
// access tokens for the requested resource.
type store struct {
	*storage.Storage
	jwt    bool
	scopes []string
	issuer string
	actors crypto.PublicKey // of actor tokens; nil for none

	mu        sync.Mutex
	keys      []*signingKey     // those that are published; the last one signs
	clock     time.Duration     // by which the time is wrong
	lifetime  time.Duration     // of access tokens
	resources map[string]string // by the ID of an authorization request, or refresh token
	wrong     map[string]string // claims of grants, for tests
}

func newStore(example *storage.Storage, jwt bool, scopes []string) (*store, error) {
	key, err := newKey()
	return &store{
		Storage: example, jwt: jwt, scopes: scopes, keys: []*signingKey{key}, lifetime: 5 * time.Minute,
		resources: map[string]string{}, wrong: map[string]string{},
	}, err
}

// command executes one line of stdin.
func (s *store) command(words []string) error {
	var given time.Duration
	if len(words) >= 2 && words[0] == "claim" {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.wrong[words[1]] = strings.Join(words[2:], " "); len(words) == 2 {
			delete(s.wrong, words[1])
		}
		return nil
	}
	if len(words) == 2 {
		var err error
		if given, err = time.ParseDuration(words[1]); err != nil {
			return err
		}
	}
	fresh, err := newKey()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch line := strings.Join(words, " "); {
	case line == "rotate":
		s.keys = append(s.keys, fresh)
	case line == "retire":
		s.keys = s.keys[len(s.keys)-1:]
	case len(words) == 2 && words[0] == "clock":
		s.clock = given
	case len(words) == 2 && words[0] == "lifetime":
		s.lifetime = given
	default:
		return fmt.Errorf("there is no command %q", line)
	}
	return nil
}

// client is one of the example's, with what this store adds.
type client struct {
	op.Client
	store *store
}

// AccessTokenType returns the type of the client's access tokens.
func (c client) AccessTokenType() op.AccessTokenType {
	if c.store.jwt {
		return op.AccessTokenTypeJWT
	}
	return c.Client.AccessTokenType()
}

// IsScopeAllowed lets clients ask for the configured scopes.
func (c client) IsScopeAllowed(scope string) bool {
	return slices.Contains(c.store.scopes, scope) || c.Client.IsScopeAllowed(scope)
}

// ClockSkew is taken away from the time of tokens.
func (c client) ClockSkew() time.Duration {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return -c.store.clock
}

// GetClientByClientID returns a client.
func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{found, s}, nil
}

// resourceKey is the context's key of the resource that a request asks for.
type resourceKey struct{}

// withResource hands on the resource that an authorization request asks for.
func withResource(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if resource := r.URL.Query().Get("resource"); resource != "" {
			r = r.WithContext(context.WithValue(r.Context(), resourceKey{}, resource))
		}
		next.ServeHTTP(w, r)
	})
}

// request is an authorization request, for a resource.
type request struct {
	op.AuthRequest
	resource string
}

// GetAudience returns the client's audience and the resource.
func (r request) GetAudience() []string { return audience(r.AuthRequest.GetAudience(), r.resource) }

// renewal is a request with a refresh token, for a resource.
type renewal struct {
	op.RefreshTokenRequest
	resource string
}

// GetAudience returns the client's audience and the resource.
func (r renewal) GetAudience() []string {
	return audience(r.RefreshTokenRequest.GetAudience(), r.resource)
}

func audience(own []string, resource string) []string {
	if resource == "" {
		return own
	}
	return append(slices.Clone(own), resource)
}

// CreateAuthRequest keeps a request with its resource.
func (s *store) CreateAuthRequest(ctx context.Context, asked *oidc.AuthRequest, user string) (op.AuthRequest, error) {
	made, err := s.Storage.CreateAuthRequest(ctx, asked, user)
	if err != nil {
		return nil, err
	}
	resource, _ := ctx.Value(resourceKey{}).(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources[made.GetID()] = resource
	return request{made, resource}, nil
}

// AuthRequestByID returns a request.
func (s *store) AuthRequestByID(ctx context.Context, id string) (op.AuthRequest, error) {
	return s.found(s.Storage.AuthRequestByID(ctx, id))
}

// AuthRequestByCode returns the request that a code was given for.
func (s *store) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	return s.found(s.Storage.AuthRequestByCode(ctx, code))
}

func (s *store) found(kept op.AuthRequest, err error) (op.AuthRequest, error) {
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return request{kept, s.resources[kept.GetID()]}, nil
}

// TokenRequestByRefreshToken returns what a refresh token is for.
func (s *store) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	kept, err := s.Storage.TokenRequestByRefreshToken(ctx, token)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return renewal{kept, s.resources[token]}, nil
}

// example is a request as the example knows it, with the resource.
func example(r op.TokenRequest) (op.TokenRequest, string) {
	switch r := r.(type) {
	case request:
		return r.AuthRequest, r.resource
	case renewal:
		return r.RefreshTokenRequest, r.resource
	}
	return r, ""
}

// GetPrivateClaimsFromRequest adds the scopes (RFC 9068, section 2.2.3), which the library
// omits.
func (s *store) GetPrivateClaimsFromRequest(ctx context.Context, r op.TokenRequest, scopes []string) (map[string]any,
	error) {
	claims, err := s.Storage.GetPrivateClaimsFromScopes(ctx, r.GetSubject(), "", scopes)
	if claims == nil {
		claims = map[string]any{}
	}
	claims["scope"] = strings.Join(r.GetScopes(), " ")
	return claims, err
}

// expiry is when an access token ends that is made now.
func (s *store) expiry() time.Time { return time.Now().UTC().Add(s.clock + s.lifetime) }

// CreateAccessToken keeps an access token.
func (s *store) CreateAccessToken(ctx context.Context, r op.TokenRequest) (string, time.Time, error) {
	r, _ = example(r)
	id, _, err := s.Storage.CreateAccessToken(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	return id, s.expiry(), err
}

// CreateAccessAndRefreshTokens keeps both.
func (s *store) CreateAccessAndRefreshTokens(ctx context.Context, r op.TokenRequest, old string) (string, string,
	time.Time, error) {
	r, resource := example(r)
	id, renewing, _, err := s.Storage.CreateAccessAndRefreshTokens(ctx, r, old)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources[renewing] = resource
	delete(s.resources, old)
	return id, renewing, s.expiry(), err
}
