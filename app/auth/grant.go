package auth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// GrantError is returned if a caller would give an agent more than its own credential gives.
type GrantError struct{ text string }

// Error returns a sentence that names the member.
func (e *GrantError) Error() string { return e.text }

// MayGrant returns a *GrantError if a caller may not give an agent a type: register it with this
// type, change it to this type, or get the token of an agent that has it.
func MayGrant(who caller.Caller, to agents.Type) error {
	if slices.Contains(who.Scopes, ScopeAgents) || slices.Contains(who.Scopes, ScopeAdmin) {
		return nil
	}
	for _, scope := range who.Scopes {
		if most, capped := strings.CutPrefix(scope, caller.AgentsPrefix); capped &&
			to.Trust() <= agents.Type(most).Trust() {
			return nil
		}
	}
	return &GrantError{fmt.Sprintf("type %q is more than your token may give an agent; its scopes are %s", to,
		strings.Join(who.Scopes, ", "))}
}

// Narrow returns the grant that a caller may make: it has the caller's profile, at most its scopes, and ends with its
// credentials. Only a person with a link of airlock console, who has no credential, may name another principal, because
// the token can use the sign-ins of its principal. The error is a *GrantError.
func (g Grant) Narrow(who caller.Caller) (Grant, error) {
	var err error
	if g.Profile, err = Narrower(who.Profile, g.Profile); err != nil {
		return Grant{}, &GrantError{err.Error()}
	}
	for _, scope := range g.Scopes {
		if !who.Has(scope) {
			return Grant{}, &GrantError{fmt.Sprintf("scope %q is more than your own token has", scope)}
		}
	}
	own := who.Issuer == "" && g.Principal == who.Principal
	if who.Kind != caller.Local && g.Principal != "" && !own {
		return Grant{}, &GrantError{"only a person who signed in with a link of airlock console may make a token for " +
			"another principal: it could use the sign-ins of that principal"}
	}
	if end := who.Expires(); !end.IsZero() && (g.Expires.IsZero() || end.Before(g.Expires)) {
		g.Expires = end
	}
	g.Creators = who.Credentials
	return g, nil
}

// MayChange returns a function that returns a *GrantError if a caller may not change an agent in
// this way: both types must be within the caller's scopes, and the agent must not live longer than
// before if that is longer than the caller's credential.
func MayChange(who caller.Caller) func(before, after agents.Agent) error {
	return func(before, after agents.Agent) error {
		for _, one := range []agents.Agent{before, after} {
			if err := MayGrant(who, one.Type); err != nil {
				return err
			}
		}
		if after.Outlives(before.Expires) && after.Outlives(who.Expires()) {
			return &GrantError{"expires is later than the end of your own token"}
		}
		return nil
	}
}
