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
