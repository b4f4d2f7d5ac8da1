// Package auth says who calls over HTTP: tokens that Airlock makes, with scopes
// and an end, stored as hashes, and the tokens of agents.
package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/airlock-mcp/airlock/admission/agents"
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
var Scopes = []string{ScopeAdmin, ScopeAgents, ScopeApprove, ScopeAudit, ScopeRun, ScopeSlash, ScopeVerify}

// Has says whether a caller has a scope, or may do everything.
func Has(who caller.Caller, scope string) bool {
	return who.Has(scope)
}

// ErrNone says that a request has no credential, ErrInvalid that its credential
// is not valid: unknown, expired or revoked.
var (
	ErrNone    = errors.New("the request has no token")
	ErrInvalid = errors.New("the token is not valid")
)

// ErrShare says that a caller whose credential is valid has its share of what there is
// for all callers already. The same request may be sent again.
var ErrShare = errors.New("this caller has as many requests under way as one caller may: wait for one of them")

// Agents knows the tokens of agents.
type Agents interface {
	Authenticate(ctx context.Context, token secret.Value) (agents.Agent, error)
}

// Authenticator identifies requests by their tokens. It may be used concurrently.
type Authenticator struct {
	Tokens *Tokens
	Agents Agents  // nil where there are none
	Issuer *Issuer // nil where only Airlock's own tokens are taken
	// Profile is that of callers whose credential names none; empty for all servers and tools.
	Profile string
	// Authority decides which callers may still act; nil means that those identified may.
	Authority *Authority
	// Admit is called with each caller who has proved its identity: all tokens of a principal
	// have one account, and all agents that a principal registered have another. Its error
	// refuses the request. nil admits all.
	Admit func(ctx context.Context, who caller.Caller) error
	// Refused is told why a token is refused, by the error of Identify or Token, or one
	// that Refuse is asked about, once for each. nil is not told.
	Refused func(ctx context.Context, err error)
}

// AgentHeader is the header that takes an agent's token beside Authorization.
const AgentHeader = "X-Agent-Token"

// Identify returns who makes a request: whom its token belongs to, as Bearer in
// Authorization (RFC 6750, section 2.1), or the agent's in X-Agent-Token. A
// token in the address is not looked at. The error is ErrNone, ErrInvalid,
// ErrProfiles, ErrShare, or that nothing could be looked up.
func (a *Authenticator) Identify(r *http.Request) (caller.Caller, error) {
	who, err := a.proved(r)
	return a.admitted(r.Context(), who, err)
}

// Proved is Identify without asking Admit, and without telling Refused.
func (a *Authenticator) Proved(r *http.Request) (caller.Caller, error) {
	quiet := *a
	quiet.Admit, quiet.Refused = nil, nil
	return quiet.Identify(r)
}

// Token returns whom a token of any kind belongs to that comes with no request of its
// own. The error is as that of Identify.
func (a *Authenticator) Token(ctx context.Context, token secret.Value) (caller.Caller, error) {
	who, err := a.ofToken(ctx, token, "")
	return a.admitted(ctx, who, err)
}

// admitted lets a caller pass who may, and gives it the default profile where its
// credential names none.
func (a *Authenticator) admitted(ctx context.Context, who caller.Caller, err error) (caller.Caller, error) {
	if err == nil && who.Profile == "" {
		who.Profile = a.Profile
	}
	if err == nil {
		err = a.inForce(ctx, who)
	}
	if err == nil && a.Admit != nil {
		err = a.Admit(ctx, who)
	}
	if err != nil {
		a.tell(ctx, err)
		return caller.Caller{}, err
	}
	return who, nil
}

// inForce returns an *InvalidError if a caller may not act any more. A suspended agent is
// let in, to be told that it is.
func (a *Authenticator) inForce(ctx context.Context, who caller.Caller) error {
	if a.Authority == nil {
		return nil
	}
	if len(who.Credentials) == 1 && strings.HasPrefix(who.Credentials[0].ID, jwtID) {
		a.Authority.renew(who.Credentials[0])
	}
	err := a.Authority.Check(ctx, who)
	switch {
	case errors.Is(err, caller.ErrEnded):
		return invalid(Ended)
	case errors.Is(err, caller.ErrInactive):
		return nil
	}
	return err
}

// tell tells of a token that is refused.
func (a *Authenticator) tell(ctx context.Context, err error) {
	if _, ok := ReasonOf(err); ok && a.Refused != nil {
		a.Refused(ctx, err)
	}
}

// proved is who makes a request, as its credential says.
func (a *Authenticator) proved(r *http.Request) (caller.Caller, error) {
	if values := r.Header.Values(AgentHeader); len(values) > 0 {
		if len(values) > 1 {
			return caller.Caller{}, invalid(Malformed)
		}
		return a.Agent(r.Context(), secret.New(values[0]))
	}
	token, err := bearer(r)
	if err != nil {
		return caller.Caller{}, err
	}
	return a.ofToken(r.Context(), token, r.URL.Path)
}

// ofToken is who has a token that comes with a request of a path.
func (a *Authenticator) ofToken(ctx context.Context, token secret.Value, path string) (who caller.Caller, err error) {
	switch {
	case agents.IsToken(token.Reveal()):
		return a.Agent(ctx, token)
	case a.Issuer != nil && isJWT(token.Reveal()):
		who, err = a.Issuer.Authenticate(ctx, token, path)
	default:
		who, err = a.Tokens.Authenticate(ctx, token)
	}
	who.Account = who.Share()
	return who, err
}

// bearer returns the one bearer token of a request.
func bearer(r *http.Request) (secret.Value, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return secret.Value{}, ErrNone
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if len(values) > 1 || !found || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t,") {
		return secret.Value{}, invalid(Malformed)
	}
	return secret.New(token), nil
}

// Agent returns the agent that a token belongs to as a caller: it may run code and
// announce its own actions. Its account is that of whom it was registered by, since one
// principal may register many; and not that principal's own, so that agents that ask too
// much can still be stopped. The agent has the profile and at most the scopes of that
// principal's credential, and ends with it. The error is as that of Identify; Admit is not asked.
func (a *Authenticator) Agent(ctx context.Context, token secret.Value) (caller.Caller, error) {
	if a.Agents == nil {
		return caller.Caller{}, invalid(Unknown)
	}
	agent, err := a.Agents.Authenticate(ctx, token)
	if errors.Is(err, agents.ErrToken) {
		return caller.Caller{}, invalid(Unknown)
	}
	if err != nil {
		return caller.Caller{}, err
	}
	who := caller.Caller{
		Principal: agent.ID, Kind: caller.Agent, Session: agent.ID, Scopes: agent.Rights(), Profile: agent.Profile,
		Account: agent.Share(), Credentials: []caller.Credential{{ID: agent.ID, Mark: agent.TokenMark, Profile: agent.Profile, Expires: agent.Expires}},
	}
	return who, a.inForce(ctx, who)
}
