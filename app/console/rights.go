package console

import (
	"slices"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// reaches reports whether what belongs to an owner is shown to a caller: what is of
// the same principal, in whichever session, and with the scope admin all of it. A
// person looks at the runs of all their hosts; the hosts do not see each other's.
func reaches(who caller.Caller, owner caller.Owner) bool {
	mine := who.Owner()
	mine.Session = owner.Session
	return who.Known() && mine == owner || who.MayReach(owner)
}

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
