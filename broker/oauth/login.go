package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Invitation is what a person is shown before the browser opens. Texts are those of the
// server and of its authorization server.
type Invitation struct {
	// Start is a page on this machine that leads to Address, once. Only the browser that opens it can complete the
	// sign-in. It has no secret in it, as far as other users of this machine are concerned.
	Start    string
	Address  string // of the authorization server; it must not be shown to others
	Origin   string // of Address: the site at which the person signs in
	Resource string
	Issuer   string // as the authorization server names itself
	Scopes   []string
	// Public reports that the answer comes to a Receiver. Start is then a page for its principal only, and Address
	// redirects that principal to the authorization server.
	Public bool
}

// Person signs in.
type Person interface {
	// Invite shows where to sign in, and opens a browser if possible. It returns at
	// once; an error ends the sign-in.
	Invite(ctx context.Context, i Invitation) error
	// Paste returns the address that the person has copied from the browser, or an error
	// if nobody can paste one. It is called again after an address that does not belong
	// to the sign-in.
	Paste(ctx context.Context) (string, error)
	// OwnsBrowser reports whether the browser runs as the user of this process.
	OwnsBrowser() bool
	// Show shows the account that was signed in, before it is used or stored.
	Show(s SignedIn)
	// Strange is called if the pasted address does not belong to the sign-in.
	Strange()
}

// SignedIn is the outcome of a sign-in.
type SignedIn struct {
	Resource string
	Issuer   string
	Account  string // as the authorization server names it; empty if it does not
	Scopes   []string
	Expires  time.Time // zero: unknown
	Renews   bool      // there is a refresh token
}

// Login signs the user in and stores the sign-in. scopes are requested in addition to
// those that are needed anyway. Login waits for the person until ctx ends. For grants
// without a person it only gets a token.
func (s *Source) Login(ctx context.Context, person Person, scopes []string) (SignedIn, error) {
	kept, err := s.reload()
	if err != nil && !isUnreadable(err) {
		return SignedIn{}, err
	}
	w := newWire(s.newDialer(s.distance(kept)))
	defer w.close()
	challenge := s.lastChallenge()
	if s.config.Exchanges() { // it is about the tokens that the sign-in is exchanged for
		challenge = Challenge{}
	}
	found, err := s.discover(ctx, w, challenge, kept)
	if err != nil {
		return SignedIn{}, fmt.Errorf("signing in to %q: %w", s.config.ServerID, err)
	}
	var fresh *record
	if s.config.isInteractive() {
		fresh, err = s.consent(ctx, w, found, person, kept, s.scopes(found, challenge, kept, scopes))
	} else {
		fresh, err = s.machine(ctx, w, found, s.scopes(found, challenge, kept, scopes))
	}
	if err == nil {
		fresh.Distance = new(w.dialer.Limit())
		err = s.replace(ctx, fresh)
	}
	if err != nil {
		return SignedIn{}, fmt.Errorf("signing in to %q: %w", s.config.ServerID, err)
	}
	return fresh.signedIn(), nil
}

// discover finds the authorization server. A client that was registered by hand is not shown to another one than that
// of the stored sign-in, unless the operator has configured the issuer.
func (s *Source) discover(ctx context.Context, w *wire, challenge Challenge, kept *record) (discovered, error) {
	if s.config.Exchanges() {
		at, err := w.provider(ctx, s.config.Issuer)
		return discovered{server: at}, err
	}
	found, err := w.discover(ctx, s.config, challenge)
	if err == nil && s.config.ClientID != "" && s.config.Issuer == "" && kept != nil &&
		kept.Issuer != found.server.Issuer {
		err = fmt.Errorf(
			"the server signed in at %s before and names %s now: the configured client is not shown to another "+
				"authorization server; if that is right, write it as servers.%s.oauth.issuer",
			quote(kept.Issuer), quote(found.server.Issuer), s.config.ServerID)
	}
	return found, err
}

func (r *record) signedIn() SignedIn {
	return SignedIn{Resource: cmp.Or(r.Resource, r.URL),
		Issuer: r.Issuer, Account: r.Account, Scopes: slices.Clone(r.Tokens.Scopes),
		Expires: r.Tokens.Expires, Renews: r.Tokens.Refresh != ""}
}

// chosenScopes returns the scopes of the server's challenge, else of its metadata, or those that the operator
// configured in place of either.
func chosenScopes(config Config, found discovered, challenge Challenge) []string {
	switch {
	case len(config.Scopes) > 0:
		return config.Scopes
	case len(challenge.Scopes) > 0:
		return challenge.Scopes
	}
	return found.resource.ScopesSupported
}

// scopes returns the scopes to request (MCP, Scope Selection Strategy): the chosen ones, those of the present sign-in,
// those that calls were refused for, more, and offline_access if the authorization server supports it.
func (s *Source) scopes(found discovered, challenge Challenge, kept *record, more []string) []string {
	chosen := chosenScopes(s.config, found, challenge)
	var had, wanted []string
	if kept != nil && kept.Issuer == found.server.Issuer {
		had, wanted = kept.Tokens.Scopes, kept.Wanted
	}
	all := union(had, chosen, challenge.Scopes, wanted, more)
	if s.config.isInteractive() && slices.Contains(found.server.ScopesSupported, "offline_access") {
		all = union(all, []string{"offline_access"})
	}
	return all
}

// record begins what is kept of a sign-in.
func (s *Source) record(found discovered, client registration) (*record, *signer, error) {
	r := &record{
		Format: recordFormat, Login: newID(), Principal: s.opts.Principal, ServerID: s.config.ServerID,
		URL: s.config.URL, Began: s.opts.Now(),
		Resource: found.resource.Resource, Issuer: found.server.Issuer, At: found.server.endpoints, Client: client,
	}
	if s.config.Exchanges() || !s.config.DPoP && !found.resource.DPoPRequired && s.lastChallenge().Scheme != "dpop" {
		return r, nil, nil
	}
	if len(found.server.DPoPAlgorithms) > 0 && !slices.Contains(found.server.DPoPAlgorithms, "ES256") {
		return nil, nil, errors.New("the authorization server takes no DPoP proofs with ES256")
	}
	key, raw, err := generateKey()
	r.Key = raw
	return r, &key, err
}

// consent asks the person, in the browser (OAuth 2.1, section 4.1).
func (s *Source) consent(ctx context.Context, w *wire, found discovered, person Person, kept *record,
	scopes []string) (*record, error) {
	if !slices.Contains(found.server.ChallengeKinds, "S256") {
		return nil, fmt.Errorf(
			"the authorization server %s does not offer PKCE with S256, without which a code could be stolen",
			plain(found.server.Issuer))
	}
	if kept == nil {
		kept = &record{}
	}
	back, err := s.wayBack(ctx, person, callbackFor(s.config, found.server), kept.Client.Redirect)
	if err != nil {
		return nil, err
	}
	defer back.close()
	client, err := w.register(ctx, s.config, found.server, back.uri(), kept.Client, s.opts.Now())
	if err != nil {
		return nil, err
	}
	s.hold(client.Secret)
	request := newAuthorization(back.uri(), found.server)
	back.prepare(&request)
	if s.config.Exchanges() {
		request.Nonce = randomText()
	}
	address, err := request.address(found.server, client.ID, found.resource.Resource, scopes)
	if err != nil {
		return nil, err
	}
	code, err := s.ask(ctx, back, request, person, back.invite(Invitation{
		Address: address, Origin: originOf(address),
		Resource: cmp.Or(found.resource.Resource, s.config.URL),
		Issuer:   found.server.Issuer, Scopes: scopes,
	}))
	if err != nil {
		return nil, err
	}
	s.hold(code)
	r, key, err := s.record(found, client)
	if err != nil {
		return nil, err
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {request.Verifier},
		"redirect_uri": {request.redirect},
	}
	setResource(form, r)
	got, err := s.requester(w, r, key).ask(ctx, form)
	if err != nil {
		return nil, err
	}
	r.Tokens = got.tokens(s.opts.Now(), scopes, "")
	for _, credential := range r.secrets() {
		s.hold(credential)
	}
	if s.config.Exchanges() {
		if err := s.identify(r, got, request.Nonce); err != nil {
			return nil, err
		}
	}
	r.Account = w.account(ctx, r, got)
	person.Show(r.signedIn())
	return r, nil
}

// wayBack is how the answer of the authorization server comes from the browser. Its methods are called in this order.
type wayBack interface {
	uri() string                    // the redirect URI
	prepare(a *authorization)       // before the address of the request is made
	invite(i Invitation) Invitation // completes an invitation
	// serve puts the first answer into answers, which must have room for it, until ctx ends.
	serve(ctx context.Context, a authorization, answers chan<- outcome) error
	close()
}

// wayBack returns the way back from a person's browser. earlier is the redirect URI of an earlier sign-in.
func (s *Source) wayBack(ctx context.Context, person Person, path, earlier string) (wayBack, error) {
	if receiver := receiverOf(person); receiver != nil {
		return receiver.back(s.opts.Principal, path), nil
	}
	return listen(ctx, s.config.RedirectPort, path, earlier, person.OwnsBrowser())
}

// ask waits for the answer, from the browser or pasted.
func (s *Source) ask(ctx context.Context, back wayBack, request authorization, person Person, i Invitation) (string,
	error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan outcome, 3)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := back.serve(ctx, request, answers); err != nil {
			answers <- outcome{err: fmt.Errorf("listening for the answer of the browser: %w", err)}
		}
	}()
	defer func() { cancel(); <-served }()
	if err := person.Invite(ctx, i); err != nil {
		return "", err
	}
	pasting := make(chan struct{})
	go func() {
		defer close(pasting)
		for ctx.Err() == nil {
			text, err := person.Paste(ctx)
			if err != nil {
				return
			}
			code, err := request.pasted(text)
			if errors.Is(err, errForeign) {
				person.Strange()
				continue
			}
			answers <- outcome{code, err}
			return
		}
	}()
	defer func() { cancel(); <-pasting }()
	select {
	case answer := <-answers:
		return answer.code, answer.err
	case <-ctx.Done():
		return "", errors.New("the sign-in was not completed")
	}
}

// requester asks the authorization server of r.
func (s *Source) requester(w *wire, r *record, dpop *signer) requester {
	return requester{wire: w, endpoint: r.At.Token, client: r.Client, dpop: dpop, now: s.opts.Now,
		key: keyOf(s.config.ClientKey)}
}

// setResource names the server that a token is for (RFC 8707).
func setResource(form url.Values, r *record) {
	if r.Resource != "" {
		form.Set("resource", r.Resource)
	}
}

// words joins scopes as forms want them.
func words(scopes []string) string { return strings.Join(scopes, " ") }
