package caller

import (
	"encoding/json"
	"slices"
)

// Facts are statements of the issuer of a credential about its principal, for policies. The zero value has none.
// They must not be changed.
type Facts struct {
	Groups []string `json:"groups,omitempty"` // sorted, each once
	// Claims are further claims by their names: texts, Booleans, numbers, and lists of texts.
	Claims map[string]json.RawMessage `json:"claims,omitempty"`
}

// IsZero reports whether nothing is stated.
func (f Facts) IsZero() bool { return len(f.Groups) == 0 && len(f.Claims) == 0 }

// Key returns a text that is equal for equal facts; empty for none.
func (f Facts) Key() string {
	if f.IsZero() {
		return ""
	}
	text, _ := json.Marshal(f) // an error is impossible: the claims were parsed before
	return string(text)
}

// IsIn reports whether the principal is in one of the groups.
func (f Facts) IsIn(groups []string) bool {
	return slices.ContainsFunc(f.Groups, func(g string) bool { return slices.Contains(groups, g) })
}
