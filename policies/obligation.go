package policies

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cedar-policy/cedar-go"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/nearest"
)

// obligation is an annotation of a permit that requires something else.
type obligation struct{ key, value string }

// Owner is who @approve("owner") asks: the person whose session it is. Every other value is a role.
const Owner = "owner"

// The annotations of a permit that decide something.
const (
	keyApprove  = "approve"  // the owner or the role that must approve
	keyPeople   = "people"   // how many different persons must approve
	keyApproved = "approved" // the person that approved such calls in advance
)

// maxPeople is the most different persons that a policy can require.
const maxPeople = 5

var roleShape = lazyregexp.New(`^[a-z][a-z0-9-]{0,63}$`)

// IsRole reports whether a text can be the name of a role in @approve("role").
func IsRole(name string) bool { return name != Owner && roleShape.MatchString(name) }

// approval is the requirement of the matching permits.
type approval struct {
	by     []string // the owner and roles, sorted
	people int      // at least so many different persons; 0 if by is empty
}

// unite collects the obligations of the matching permits. An unknown obligation is an error: a permit whose obligation
// cannot be fulfilled does not permit. @approved replaces the approval of the owner, but not that of a role or of a
// second person.
func (e *Engine) unite(permits []rule) (needs approval, errs []string) {
	var approved bool
	for _, permit := range permits {
		asks := false
		for _, o := range permit.obligations {
			if problem := o.problem(e.roles); problem != "" {
				errs = append(errs, fmt.Sprintf("%s: %s", permit.Rule, problem))
				continue
			}
			switch o.key {
			case keyApprove:
				asks = true
				needs.by = append(needs.by, o.value)
			case keyPeople:
				n, _ := strconv.Atoi(o.value)
				needs.people = max(needs.people, n)
			case keyApproved:
				approved = true
			}
		}
		if !asks && slices.ContainsFunc(permit.obligations, func(o obligation) bool { return o.key == keyPeople }) {
			errs = append(errs, fmt.Sprintf("%s has @people and no @approve", permit.Rule))
		}
	}
	if approved && needs.people < 2 {
		needs.by = slices.DeleteFunc(needs.by, func(name string) bool { return name == Owner })
	}
	slices.Sort(needs.by)
	needs.by = slices.Compact(needs.by)
	if needs.people = max(needs.people, 1); len(needs.by) == 0 {
		needs.people = 0
	}
	slices.Sort(errs)
	return needs, slices.Compact(errs)
}

// problem describes the mistake in an obligation; empty if it can be fulfilled.
func (o obligation) problem(roles []string) string {
	switch o.key {
	case keyApprove:
		if o.value != Owner && !slices.Contains(roles, o.value) {
			return fmt.Sprintf("there is no approver %q in @approve%s", o.value,
				nearest.Hint(o.value, append([]string{Owner}, roles...)))
		}
	case keyPeople:
		if n, err := strconv.Atoi(o.value); err != nil || n < 2 || n > maxPeople {
			return fmt.Sprintf(`@people(%q) is not a number from 2 to %d, such as @people("2")`, o.value, maxPeople)
		}
	case keyApproved:
		if o.value == "" {
			return `@approved names nobody; write who approved it, such as @approved("ann")`
		}
	default:
		return fmt.Sprintf("it asks for @%s, which Airlock does not know", o.key)
	}
	return ""
}

// WithRoles makes the roles known that @approve can ask, and returns e. It must be called before e is used. A permit
// that asks another role does not permit.
func (e *Engine) WithRoles(names []string) *Engine {
	e.roles = names
	return e
}

// UnknownRole returns the first rule with an @approve that names neither the owner nor a known role. The problem is
// empty if every rule is valid.
func (e *Engine) UnknownRole() (in Rule, problem string) {
	for _, r := range e.Rules() {
		for _, o := range e.info[cedar.PolicyID(r.ID)].obligations {
			if problem := o.problem(e.roles); problem != "" && o.key == keyApprove && !r.Forbid {
				return r, problem
			}
		}
	}
	return Rule{}, ""
}
