// Package auth authenticates callers over HTTP: with tokens that Airlock issues, which have scopes
// and an expiry and are stored as hashes, with the tokens of agents, and with the tokens of an
// OAuth issuer.
package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// The scopes of a token, see internal/caller.
const (
	ScopeRun     = caller.ScopeRun
	ScopeVerify  = caller.ScopeVerify
	ScopeAgents  = caller.ScopeAgents
	ScopeApprove = caller.ScopeApprove
	ScopeAudit   = caller.ScopeAudit
	ScopeSlash   = caller.ScopeSlash
	ScopeAdmin   = caller.ScopeAdmin
)

// Scopes are all scopes, in order.
var Scopes = config.AuthRights

// Has reports whether a caller has a scope or may do everything.
func Has(who caller.Caller, scope string) bool {
	return who.Has(scope)
}

// ErrNone is returned if a request has no credential, ErrInvalid if its credential is not valid,
// for example unknown, expired or revoked.
var (
	ErrNone    = errors.New("the request has no token")
	ErrInvalid = errors.New("the token is not valid")
)

// Agents knows the tokens of agents.
type Agents interface {
	Authenticate(ctx context.Context, token secret.Value) (agents.Agent, error)
}

// Authenticator identifies requests by their tokens. It is safe for concurrent use.
type Authenticator struct {
	Tokens *Tokens
	Agents Agents // nil if agents are not configured
	// Issuer returns the issuer whose tokens are accepted now. If it or its result is nil, only tokens
	// that Airlock issued are accepted.
	Issuer func() *Issuer
	// Profile returns the profile of callers whose credential has none; empty for all servers and
	// tools. It may be nil.
	Profile func() string
	// Roles returns the roles of a caller, see RolesOf. It may be nil.
	Roles func(who caller.Caller) []string
	// Authority decides which callers may still act; nil means that those identified may.
	Authority *Authority
	// Admit is called with each caller who has proved its identity: all tokens of a principal
	// have one account, and all agents that a principal registered have another. Its error
	// refuses the request. nil admits all.
	Admit func(ctx context.Context, who caller.Caller) error
	// Refused is called once for each refused token, with the error of Identify or Token or the
	// error passed to Refuse. It may be nil.
	Refused func(ctx context.Context, err error)
}

// AgentHeader is a header for an agent's token, as an alternative to Authorization.
const AgentHeader = "X-Agent-Token"

// Identify returns the caller of a request from its token: a Bearer token in Authorization (RFC
// 6750, section 2.1) or the token of an agent in X-Agent-Token. It ignores a token in the URL. The
// error is ErrNone, ErrInvalid, ErrProfiles, a *quota.Refusal, or an error of the lookup.
func (a *Authenticator) Identify(r *http.Request) (caller.Caller, error) {
	found, err := a.proved(r)
	return a.admitted(r.Context(), found, err)
}

// Proved is Identify without calls of Admit and Refused.
func (a *Authenticator) Proved(r *http.Request) (caller.Caller, error) {
	quiet := *a
	quiet.Admit, quiet.Refused = nil, nil
	return quiet.Identify(r)
}

// Token returns the caller that a token of any kind identifies, for a token that is not part of a
// request. It returns the errors of Identify.
func (a *Authenticator) Token(ctx context.Context, token secret.Value) (caller.Caller, error) {
	found, err := a.ofToken(ctx, token, "")
	return a.admitted(ctx, found, err)
}

// proof is a caller that a credential identifies.
type proof struct {
	who caller.Caller
	// isCurrent means that the credential was read just now, or lately if the database does not answer, and was in
	// force then. It depends on those of made.
	isCurrent bool
	made      []caller.Credential
}

// admitted returns the caller if it may act and Admit accepts it. If the credential names no
// profile, the caller gets the default profile.
func (a *Authenticator) admitted(ctx context.Context, found proof, err error) (caller.Caller, error) {
	who := found.who
	if err == nil && who.Profile == "" {
		who.Profile = a.profile()
	}
	if err == nil && a.Roles != nil {
		who.Roles = a.Roles(who)
	}
	if err == nil {
		found.who = who
		err = a.inForce(ctx, found)
	}
	if err == nil && a.Admit != nil {
		err = a.Admit(ctx, who)
	}
	if err != nil {
		a.report(ctx, err)
		return caller.Caller{}, err
	}
	return who, nil
}

// inForce returns an *InvalidError if a caller may no longer act. A suspended agent passes, so that
// its requests can be refused with that reason.
func (a *Authenticator) inForce(ctx context.Context, found proof) error {
	if a.Authority == nil {
		return nil
	}
	who := found.who
	if len(who.Credentials) == 1 && strings.HasPrefix(who.Credentials[0].ID, jwtID) {
		a.Authority.renew(who.Credentials[0])
	}
	err := a.Authority.checkProof(ctx, found)
	switch {
	case errors.Is(err, caller.ErrEnded):
		return invalid(Ended)
	case errors.Is(err, caller.ErrInactive):
		return nil
	case err == nil:
		a.Authority.opts.Tokens.use(ctx, who.Credentials)
	}
	return err
}

// report calls Refused if err refuses a token.
func (a *Authenticator) report(ctx context.Context, err error) {
	if _, ok := ReasonOf(err); ok && a.Refused != nil {
		a.Refused(ctx, err)
	}
}

// proved returns the caller of a request from its credential.
func (a *Authenticator) proved(r *http.Request) (proof, error) {
	if values := r.Header.Values(AgentHeader); len(values) > 0 {
		if len(values) > 1 {
			return proof{}, invalid(Malformed)
		}
		return a.ofAgent(r.Context(), secret.New(values[0]))
	}
	token, err := bearer(r)
	if err != nil {
		return proof{}, err
	}
	return a.ofToken(r.Context(), token, r.URL.Path)
}

// ofToken returns the caller that a token identifies in a request for path.
func (a *Authenticator) ofToken(ctx context.Context, token secret.Value, path string) (proof, error) {
	issuer := a.issuer()
	switch {
	case agents.IsToken(token.Reveal()):
		return a.ofAgent(ctx, token)
	case issuer != nil && isJWT(token.Reveal()):
		who, err := issuer.Authenticate(ctx, token, path)
		return proof{who: who}, err
	}
	return a.Tokens.prove(ctx, token)
}

func (a *Authenticator) issuer() *Issuer {
	if a.Issuer == nil {
		return nil
	}
	return a.Issuer()
}

func (a *Authenticator) profile() string {
	if a.Profile == nil {
		return ""
	}
	return a.Profile()
}

// bearer returns the one bearer token of a request.
func bearer(r *http.Request) (secret.Value, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return secret.Value{}, ErrNone
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if len(values) > 1 || !found || !strings.EqualFold(scheme, "Bearer") || token == "" ||
		strings.ContainsAny(token, " \t,") {
		return secret.Value{}, invalid(Malformed)
	}
	return secret.New(token), nil
}

// Agent returns the caller for the token of an agent. The agent has the profile and at most the
// scopes of the credential that registered it, and ends with it. Agent returns the errors of
// Identify and does not call Admit.
func (a *Authenticator) Agent(ctx context.Context, token secret.Value) (caller.Caller, error) {
	found, err := a.ofAgent(ctx, token)
	if err == nil {
		err = a.inForce(ctx, found)
	}
	return found.who, err
}

func (a *Authenticator) ofAgent(ctx context.Context, token secret.Value) (proof, error) {
	if a.Agents == nil {
		return proof{}, invalid(Unknown)
	}
	agent, err := a.Agents.Authenticate(ctx, token)
	if errors.Is(err, agents.ErrToken) {
		err = invalid(Unknown)
	}
	if err != nil {
		return proof{}, err
	}
	return proof{agent.Caller(), agent.Status == agents.Active, agent.Inherited.Credentials}, nil
}
