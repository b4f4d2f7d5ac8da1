package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
)

// Widens returns the changed keys with which after may permit more than before. Policy files
// are compared by policies.Widens instead. Only the following changes do not widen: a server
// was removed, a profile was removed or shows less, auth was removed or gives less, a tool was denied or is not
// allowed any more, a risk was raised, or a limit was lowered. Any other change counts as widening.
func Widens(before, after *Config) []string {
	live, restart := Changes(before, after)
	was, is := map[string]Server{}, map[string]Server{}
	for _, server := range before.Servers {
		was[server.ID] = server
	}
	for _, server := range after.Servers {
		is[server.ID] = server
	}
	var keys []string
	for _, key := range append(live, restart...) {
		id, ofServer := strings.CutPrefix(key, "servers.")
		started, ofConnection := strings.CutPrefix(key, "mcpServers.")
		_, stays := is[started]
		switch {
		case key == "policies":
		case key == "limits" && limitsNarrow(before.Limits.Calls, after.Limits.Calls):
		case ofServer && settingsNarrow(was[id].Settings, is[id].Settings):
		case ofConnection && !stays:
		case key == "profiles" && profilesNarrow(before, after):
		case key == "auth" && authNarrow(before.Auth, after.Auth):
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// profilesNarrow reports whether only profiles were removed, or servers and tools of them. Callers of a removed profile
// are refused.
func profilesNarrow(before, after *Config) bool {
	for _, now := range after.Profiles {
		narrows := func(was *catalog.Profile) bool { return profileNarrows(*was, *now) }
		if !slices.ContainsFunc(before.Profiles, narrows) {
			return false
		}
	}
	return before.DefaultProfile == after.DefaultProfile
}

// profileNarrows reports whether only servers and tools were removed. A profile shows the union of its lists.
func profileNarrows(was, now catalog.Profile) bool {
	for _, servers := range now.Servers {
		if !slices.ContainsFunc(was.Servers, func(s catalog.ProfileServers) bool {
			return s.Server == servers.Server && within(servers.Tools, s.Tools)
		}) {
			return false
		}
	}
	now.Servers = was.Servers
	return reflect.DeepEqual(was, now)
}

// authNarrow reports whether only rights and members of roles were removed, or the issuer.
func authNarrow(before, after Auth) bool {
	if !rolesNarrow(before.Roles, after.Roles) {
		return false
	}
	if after.Issuer == "" {
		return true // its tokens are refused
	}
	signIn := before.SignIn
	if !scopesNarrow(before.Scopes, after.Scopes) || !scopesNarrow(signIn.Groups, after.SignIn.Groups) ||
		!scopesNarrow([]Scope{signIn.Everyone}, []Scope{after.SignIn.Everyone}) ||
		len(after.Scopes) == 0 && len(before.Scopes) > 0 { // without scopes, the names of all rights are scopes
		return false
	}
	rest := after
	rest.Roles, rest.Scopes = before.Roles, before.Scopes
	rest.SignIn.Groups, rest.SignIn.Everyone = signIn.Groups, signIn.Everyone
	return reflect.DeepEqual(before, rest)
}

// rolesNarrow reports whether only roles and their members were removed.
func rolesNarrow(before, after []Role) bool {
	return !slices.ContainsFunc(after, func(now Role) bool {
		n := slices.IndexFunc(before, func(was Role) bool { return was.Name == now.Name })
		return n < 0 || !within(now.Groups, before[n].Groups) || !within(now.Principals, before[n].Principals)
	})
}

// scopesNarrow reports whether only rights were removed, and scopes without a profile: a caller that loses its profile
// sees more.
func scopesNarrow(before, after []Scope) bool {
	for _, now := range after {
		n := slices.IndexFunc(before, func(was Scope) bool { return was.Name == now.Name })
		if n < 0 || now.Profile != before[n].Profile || !within(now.Rights, before[n].Rights) {
			return false
		}
	}
	return !slices.ContainsFunc(before, func(was Scope) bool {
		return was.Profile != "" && !slices.ContainsFunc(after, func(now Scope) bool { return now.Name == was.Name })
	})
}

// within reports whether all of list are in other.
func within[T comparable](list, other []T) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !slices.Contains(other, v) })
}

// settingsNarrow reports whether the new settings of a server permit nothing more.
func settingsNarrow(before, after Settings) bool {
	if after.TrustAnnotations && !before.TrustAnnotations {
		return false
	}
	for _, name := range after.Allow {
		if !slices.Contains(before.Allow, name) {
			return false
		}
	}
	for _, name := range before.Deny {
		if !slices.Contains(after.Deny, name) {
			return false
		}
	}
	for name, tool := range before.Tools {
		if after.Tools[name] != tool {
			return false
		}
	}
	for name, tool := range after.Tools {
		// A risk that the operator sets for the first time may be lower than the server's own.
		if before.Tools[name] != tool && (tool.Risk != "destructive" || tool.Rate != (Rate{})) {
			return false
		}
	}
	rest := after
	rest.TrustAnnotations, rest.Allow, rest.Deny, rest.Tools = before.TrustAnnotations, before.Allow, before.Deny,
		before.Tools
	return reflect.DeepEqual(before, rest)
}

// limitsNarrow reports whether no limit of calls was raised. Any change of a rate other than
// fewer calls in the same time counts as raised.
func limitsNarrow(before, after CallLimits) bool {
	was, is := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range was.NumField() {
		switch b := was.Field(i).Interface().(type) {
		case Rate:
			a, _ := is.Field(i).Interface().(Rate)
			if a != b && (a.Calls == 0 || a.Per != b.Per || a.Calls > b.Calls) {
				return false
			}
		default:
			if is.Field(i).Int() > was.Field(i).Int() || is.Field(i).Int() <= 0 && was.Field(i).Int() > 0 {
				return false
			}
		}
	}
	return true
}
