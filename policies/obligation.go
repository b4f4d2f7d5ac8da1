package policies

import (
	"fmt"
	"slices"
)

// obligation is an annotation of a permit that requires something else.
type obligation struct{ key, value string }

// Owner is who @approve("owner") asks: the person whose session it is.
const Owner = "owner"

// approvers are the values that @approve may have.
var approvers = []string{Owner}

// unite collects the obligations of the matching permits. An unknown obligation is an error:
// a permit whose obligation cannot be fulfilled does not permit.
func unite(permits []rule) (approve []string, errs []string) {
	for _, permit := range permits {
		for _, o := range permit.obligations {
			switch {
			case o.key != "approve":
				errs = append(errs, fmt.Sprintf("%s asks for @%s, which Airlock does not know", permit.Rule, o.key))
			case !slices.Contains(approvers, o.value):
				errs = append(errs, fmt.Sprintf("%s asks for the approval of %q, whom Airlock does not know",
					permit.Rule, o.value))
			default:
				approve = append(approve, o.value)
			}
		}
	}
	slices.Sort(approve)
	slices.Sort(errs)
	return slices.Compact(approve), slices.Compact(errs)
}
