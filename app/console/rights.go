package console

import (
	"slices"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// reaches reports whether a caller may do something with an object of an owner. A person can see
// the runs of all their hosts; a host cannot see those of another host.
func reaches(who caller.Caller, act caller.Act, kind caller.ObjectKind, owner caller.Owner) bool {
	return who.May(caller.People, act, caller.Object{Kind: kind, Owner: owner})
}

// allLog is the audit log, which has the records of all callers and profiles.
var allLog = caller.Object{Kind: caller.Log}

// configuration is that of all callers and profiles.
var configuration = caller.Object{Kind: caller.Configuration}

// shownScopes are the scopes of a caller as a page lists them.
func shownScopes(scopes []string) []string {
	var shown []string
	for _, scope := range auth.Scopes {
		if slices.Contains(scopes, scope) {
			shown = append(shown, scope)
		}
	}
	return shown
}
