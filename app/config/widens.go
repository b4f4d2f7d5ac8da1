package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/catalog"
)

// Widens returns the changed keys with which after may permit more than before. Policy files
// are compared by policies.Widens instead. Only the following changes do not widen: a server
// was removed, a profile was removed, auth was removed, a tool was denied or is not allowed any
// more, a risk was raised, or a limit was lowered. Any other change counts as widening.
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
		case key == "auth" && after.Auth.Issuer == "" && reflect.DeepEqual(after.Auth.Roles, before.Auth.Roles):
			// tokens of the issuer are refused
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// profilesNarrow reports whether profiles were only removed. Callers of a removed profile are refused.
func profilesNarrow(before, after *Config) bool {
	for _, p := range after.Profiles {
		if !slices.ContainsFunc(before.Profiles, func(was *catalog.Profile) bool { return reflect.DeepEqual(was, p) }) {
			return false
		}
	}
	return before.DefaultProfile == after.DefaultProfile
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
