package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxExchanged is how long an exchanged token is used. Within this time, the identity provider can end the access.
const maxExchanged = 10 * time.Minute

// exchanged are the credentials of a principal that has signed in at the identity provider. Requests carry a token of
// the server, which the sign-in was exchanged for. The token is in memory only, belongs to one sign-in, and is not sent
// after the sign-in has changed or ended.
type exchanged struct {
	source *Source
	actor  json.RawMessage // the actor for the principal, see Source.Acting; may be nil
	turn   chan struct{}   // holds a value while a token is got

	mu    sync.Mutex // guards the fields below
	token derived
	more  []string // scopes that the server has asked for
}

// derived is a token of the server. login is the sign-in that it was exchanged for.
type derived struct {
	login, access   string
	issued, expires time.Time
}

var (
	_ upstream.Credentials = (*exchanged)(nil)
	_ upstream.Signer      = (*exchangedBinding)(nil)
)

// Acting returns the credentials for the calls of one actor. actor is the claim act of RFC 8693, section 4.1. The
// identity provider gets it in a signed actor token if Config.Delegate is set. Otherwise the credentials are those of
// s.
func (s *Source) Acting(actor json.RawMessage) upstream.Credentials {
	if s.plain == nil || !s.target.Delegate || len(actor) == 0 {
		return s
	}
	return s.acting(actor)
}

func (s *Source) acting(actor json.RawMessage) *exchanged {
	return &exchanged{source: s, actor: actor, turn: make(chan struct{}, 1)}
}

// Bind implements upstream.Credentials.
func (e *exchanged) Bind() upstream.Signer { return &exchangedBinding{e.source.bind(), e} }

// Ready implements upstream.Credentials.
func (e *exchanged) Ready(ctx context.Context) error { return e.source.Ready(ctx) }

// exchangedBinding signs the requests of one connection.
type exchangedBinding struct {
	*binding
	tokens *exchanged
}

// Sign implements upstream.Signer.
func (b *exchangedBinding) Sign(ctx context.Context, request *http.Request) error {
	r, err := b.current(ctx, request)
	if err != nil || r == nil {
		return err
	}
	token, err := b.tokens.get(ctx, r)
	if err == nil {
		err = b.check() // it may have changed during the exchange
	}
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token.access)
	return nil
}

// Refused implements upstream.Signer. A token that the server refuses is dropped, and another one is got once.
func (b *exchangedBinding) Refused(ctx context.Context, request *http.Request, response *http.Response) (again bool,
	err error) {
	s, challenge, sent := b.source, challengeOf(response.Header), tokenOf(request)
	lacksScope := response.StatusCode == http.StatusForbidden && challenge.Error == "insufficient_scope"
	if response.StatusCode != http.StatusUnauthorized && !lacksScope {
		return false, nil
	}
	s.remember(challenge)
	if err := b.check(); err != nil {
		return false, err
	}
	kept, err := s.reload()
	switch {
	case err != nil:
		return false, s.failure(err)
	case kept == nil:
		return false, s.problem(whyNever, nil)
	case sent == "" || b.tokens.drop(sent, challenge.Scopes, lacksScope, s.opts.Now()):
		return true, nil
	case lacksScope:
		return false, s.failure(errors.New("the server asks for scopes that the identity provider does not grant"))
	}
	return false, s.failure(errors.New("the server does not accept the token that was issued for it"))
}

// drop forgets a token that the server has refused. It reports whether another token may be accepted.
func (e *exchanged) drop(sent string, scopes []string, lacksScope bool, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.token
	if old.access != sent {
		return true // another request has got a new one meanwhile
	}
	e.token = derived{}
	if !lacksScope {
		return now.Sub(old.issued) >= justIssued
	}
	isNew := slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(e.more, scope) })
	e.more = union(scopes, e.more)
	e.more = e.more[:min(len(e.more), maxScopes)]
	return isNew
}

// kept returns the token for a sign-in, if it can be used.
func (e *exchanged) kept(r *record) (token derived, more []string, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ok = e.token.access != "" && e.token.login == r.login() && e.source.opts.Now().Before(e.token.expires)
	return e.token, e.more, ok
}

// get returns the token for a sign-in. Only one request gets a new one, while the others wait.
func (e *exchanged) get(ctx context.Context, r *record) (derived, error) {
	if token, _, ok := e.kept(r); ok {
		return token, nil
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return derived{}, ctx.Err()
	}
	token, more, ok := e.kept(r)
	if ok {
		return token, nil
	}
	s := e.source
	err := s.tolerated(ctx, r.login(), func() (err error) {
		token, err = s.exchange(ctx, r, e.actor, more)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return derived{}, ctx.Err()
	case err != nil:
		return derived{}, s.failure(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.token = token
	return token, nil
}

// exchange gets a token of the server. If the identity provider refuses the subject token, it is renewed once, which
// ends the sign-in if the identity provider does not renew it.
func (s *Source) exchange(ctx context.Context, r *record, actor json.RawMessage, more []string) (derived, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*httpTimeout)
	defer cancel()
	w := newWire(s.newDialer(s.distance(r)))
	defer w.close()
	challenge := s.lastChallenge()
	found, err := w.discover(ctx, s.target, challenge)
	if err != nil {
		return derived{}, err
	}
	if found.resource.DPoPRequired {
		return derived{}, errors.New("the server requires DPoP, which exchanged tokens do not have")
	}
	scopes := union(chosenScopes(s.target, found, challenge), more)
	got, err := s.obtainFor(ctx, w, found, r, actor, scopes)
	if errors.As(err, new(*subjectError)) {
		sent := r.Tokens.Access
		if r, err = s.refresh(ctx, func(r *record) bool { return r.Tokens.Access == sent }); err != nil {
			return derived{}, err
		}
		got, err = s.obtainFor(ctx, w, found, r, actor, scopes)
	}
	if err != nil {
		return derived{}, err
	}
	s.hold(got.Access)
	now := s.opts.Now()
	t := got.tokens(now, scopes, "")
	token := derived{login: r.login(), access: t.Access, issued: now, expires: now.Add(maxExchanged)}
	if !t.Expires.IsZero() && t.Expires.Add(-t.ahead()).Before(token.expires) {
		token.expires = t.Expires.Add(-t.ahead())
	}
	return token, nil
}

// obtainFor asks the identity provider, and with Enterprise then the authorization server of the server.
func (s *Source) obtainFor(ctx context.Context, w *wire, found discovered, r *record, actor json.RawMessage,
	scopes []string) (issued, error) {
	if s.target.Grant == TokenExchange {
		own := subject{kind: tokenAccess, token: r.Tokens.Access}
		return s.askProvider(ctx, w, found, own, actor, scopes, tokenAccess)
	}
	assertion, err := s.grant(ctx, w, found, subject{kind: tokenID, token: r.Tokens.ID}, actor, scopes)
	if err != nil {
		return issued{}, err
	}
	client, err := w.register(ctx, s.target, found.server, "", registration{}, s.opts.Now())
	if err != nil {
		return issued{}, err
	}
	form := url.Values{"grant_type": {grantJWT}, "assertion": {assertion}, "resource": {found.resource.Resource}}
	if len(scopes) > 0 {
		form.Set("scope", words(scopes))
	}
	asker := requester{wire: w, endpoint: found.server.Token, client: client, now: s.opts.Now,
		key: keyOf(s.target.ClientKey)}
	got, err := asker.ask(ctx, form)
	if err == nil && got.Kind == tokenIDJAG {
		err = errors.New("the authorization server answered without an access token")
	}
	return got, err
}

// subject is the token that is exchanged.
type subject struct{ kind, token string }

// subjectError is a refusal that a new subject token may avert (RFC 8693, section 2.2.2).
type subjectError struct{ cause error }

// Error names the identity provider.
func (e *subjectError) Error() string { return fmt.Sprintf("the identity provider: %v", e.cause) }

// Unwrap returns the cause.
func (e *subjectError) Unwrap() error { return e.cause }

// grant exchanges the user's ID token at the identity provider for a grant for the authorization server of found (RFC
// 8693; Identity Assertion Authorization Grant). The grant is not handed on if it is for another authorization server,
// client or resource, because its receiver could use it there.
func (s *Source) grant(ctx context.Context, w *wire, found discovered, subject subject, actor json.RawMessage,
	scopes []string) (string, error) {
	got, err := s.askProvider(ctx, w, found, subject, actor, scopes, tokenIDJAG)
	if err != nil {
		return "", err
	}
	s.hold(got.Access)
	if err := s.checkGrant(got.Access, found, actor != nil); err != nil {
		return "", fmt.Errorf("the identity provider: %w", err)
	}
	return got.Access, nil
}

// askProvider sends one token exchange to the identity provider.
func (s *Source) askProvider(ctx context.Context, w *wire, found discovered, subject subject, actor json.RawMessage,
	scopes []string, want string) (issued, error) {
	provider, err := w.provider(ctx, s.config.Provider.Issuer)
	if err != nil {
		return issued{}, fmt.Errorf("the identity provider: %w", err)
	}
	client, err := w.register(ctx, s.target.atProvider(), provider, "", registration{}, s.opts.Now())
	if err != nil {
		return issued{}, err
	}
	asker := requester{wire: w, endpoint: provider.Token, now: s.opts.Now, client: client,
		key: keyOf(s.target.Provider.ClientKey)}
	form := url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {want}, "subject_token": {subject.token},
		"subject_token_type": {subject.kind}, "resource": {found.resource.Resource},
	}
	if want == tokenIDJAG {
		form.Set("audience", found.server.Issuer)
	}
	if len(scopes) > 0 {
		form.Set("scope", words(scopes))
	}
	if actor != nil {
		token, err := actorToken(asker, actor)
		if err != nil {
			return issued{}, err
		}
		s.hold(token)
		form.Set("actor_token", token)
		form.Set("actor_token_type", tokenJWT)
	}
	got, err := asker.ask(ctx, form)
	refused := (*refusal)(nil)
	switch {
	case errors.As(err, &refused) && (refused.Code == "invalid_request" || refused.Code == "invalid_grant"):
		return issued{}, &subjectError{err}
	case err != nil:
		return issued{}, fmt.Errorf("the identity provider: %w", err)
	case got.Kind != want:
		return issued{}, errors.New("the identity provider: it answered with another type of token")
	}
	return got, nil
}

// actorToken returns a token about who acts, signed with Airlock's key at the identity provider.
func actorToken(r requester, actor json.RawMessage) (string, error) {
	var claims map[string]any
	if err := strictjson.Unmarshal(actor, &claims); err != nil || r.key == nil {
		return "", errors.New("there is no actor, or no key to sign with")
	}
	now := r.now()
	claims["iss"], claims["aud"], claims["jti"] = r.client.ID, r.client.Issuer, newID()
	claims["iat"], claims["exp"] = now.Unix(), now.Add(time.Minute).Unix()
	return r.key.sign(map[string]any{"typ": "JWT"}, claims)
}
