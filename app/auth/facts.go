package auth

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Limits of the facts of one principal.
const (
	maxGroups = 1000 // a policy looks into no longer list
	maxClaims = 50
	maxFact   = 1000 // bytes of one group, name or value
)

// FactsOf returns facts of groups and of claims that are texts.
func FactsOf(groups []string, claims map[string]string) caller.Facts {
	f := caller.Facts{Groups: slices.Compact(slices.Sorted(slices.Values(groups)))}
	for name, text := range claims {
		if f.Claims == nil {
			f.Claims = map[string]json.RawMessage{}
		}
		f.Claims[name], _ = json.Marshal(text) // a text has a JSON form
	}
	return f
}

// checkFacts returns an error if facts exceed the limits.
func checkFacts(f caller.Facts) error {
	if len(f.Groups) > maxGroups || len(f.Claims) > maxClaims {
		return fmt.Errorf("a principal must have at most %d groups and %d claims", maxGroups, maxClaims)
	}
	for _, group := range f.Groups {
		if !isFact(group) {
			return fmt.Errorf("a group must have 1 to %d bytes and no control characters", maxFact)
		}
	}
	for name, value := range f.Claims {
		if !isFact(name) || len(value) > maxFact {
			return fmt.Errorf("a claim must have a name and at most %d bytes", maxFact)
		}
	}
	return nil
}

func isFact(text string) bool {
	return text != "" && len(text) <= maxFact &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// factsOf returns the facts that a token of an issuer states: the groups in the claim that is configured, and the
// configured claims. A token whose groups cannot be read is not valid, because a rule that forbids something to a group
// would not apply to its members.
func (i *Issuer) factsOf(all map[string]json.RawMessage) (f caller.Facts, ok bool) {
	if groups, there := all[i.config.GroupsClaim]; there && string(groups) != "null" {
		if f.Groups, ok = texts(groups); !ok {
			return caller.Facts{}, false
		}
	} else if isElsewhere(all, i.config.GroupsClaim) {
		return caller.Facts{}, false
	}
	for _, name := range i.config.Claims {
		value, there := all[name]
		if !there || string(value) == "null" {
			continue
		}
		if _, isList := texts(value); !isList && !isScalar(value) {
			continue // a policy that needs it does not find it
		}
		if f.Claims == nil {
			f.Claims = map[string]json.RawMessage{}
		}
		f.Claims[name] = slices.Clone(value)
	}
	return f, checkFacts(f) == nil
}

// isElsewhere reports whether a token has a claim only as a reference to another place (OpenID Connect Core 1.0,
// section 5.6.2), as some issuers do if a person is in many groups.
func isElsewhere(all map[string]json.RawMessage, claim string) bool {
	var names map[string]json.RawMessage
	if strictjson.UnmarshalOpen(all["_claim_names"], &names) != nil {
		return false
	}
	_, is := names[claim]
	return is
}

// texts returns a text, or a list of texts, sorted and each once.
func texts(value json.RawMessage) (list []string, ok bool) {
	var one string
	if strictjson.UnmarshalOpen(value, &one) == nil && len(value) > 0 && value[0] == '"' {
		return []string{one}, true
	}
	if len(value) == 0 || value[0] != '[' || strictjson.UnmarshalOpen(value, &list) != nil {
		return nil, false
	}
	slices.Sort(list)
	return slices.Compact(list), true
}

// isScalar reports whether a claim is a Boolean or a number.
func isScalar(value json.RawMessage) bool {
	return len(value) > 0 && value[0] != '{' && value[0] != '['
}
