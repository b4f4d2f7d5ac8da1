package config

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Changes compares the configuration in force with a configuration that was read later from
// the same file. live are the changed keys that can be applied while Airlock serves: the
// settings of servers, the limits of calls and the policies. restart are the changed keys
// that need a restart. Both are sorted, and empty if nothing has changed.
func Changes(before, after *Config) (live, restart []string) {
	live, restart = serverChanges(before, after)
	if !slices.Equal(before.Policies, after.Policies) {
		live = append(live, "policies")
	}
	was, is := before.Limits.Calls, after.Limits.Calls
	was.Timeout, is.Timeout = 0, 0 // applies to servers, which are compared separately
	if was != is {
		live = append(live, "limits")
	}
	restart = append(restart, fieldChanges("", withoutLive(before), withoutLive(after))...)
	slices.Sort(live)
	slices.Sort(restart)
	restart = slices.Compact(restart)
	return live, restart
}

// withoutLive returns c without the servers and without the values that can change while
// Airlock serves.
func withoutLive(c *Config) reflect.Value {
	rest := *c
	rest.Servers, rest.Policies = nil, nil
	rest.Limits.Calls = CallLimits{Timeout: c.Limits.Calls.Timeout}
	rest.Sandbox.Asked = nil // follows from other keys
	return reflect.ValueOf(rest)
}

// serverChanges compares servers: their settings are live, the rest is not.
func serverChanges(before, after *Config) (live, restart []string) {
	was := map[string]Server{}
	for _, server := range before.Servers {
		was[server.ID] = server
	}
	for _, server := range after.Servers {
		old, ok := was[server.ID]
		delete(was, server.ID)
		switch {
		case !ok || !reflect.DeepEqual(connection(old, before), connection(server, after)):
			restart = append(restart, "mcpServers."+server.ID)
		case !reflect.DeepEqual(old.Settings, server.Settings):
			live = append(live, "servers."+server.ID)
		}
	}
	for id := range was {
		restart = append(restart, "mcpServers."+id)
	}
	return live, restart
}

// connection returns the part of a server's configuration that cannot change while it is
// connected.
func connection(server Server, c *Config) Server {
	// The held credentials and the treatment of personal data are fixed when Airlock starts.
	was := server.Settings
	server.Settings = Settings{Secrets: was.Secrets, Public: was.Public, Personal: was.Personal, OAuth: was.OAuth, Elicitation: was.Elicitation}
	server.line, server.column = 0, 0
	if server.CallTimeout == c.Limits.Calls.Timeout {
		server.CallTimeout = 0 // the default
	}
	return server
}

// keysOf maps fields to their keys, if keyOf does not derive them.
var keysOf = map[string]string{
	"File": "the file itself", "Placeholders": "redaction.placeholders", "Credentials": "a variable that holds a credential",
	"Limits.Calls": "limits.callTimeout", "Kernel.Models": "models",
	"Personal":       "redaction.personalData",
	"DefaultProfile": "profiles", "Profiles": "profiles", "Refresh": "tools.ttl", "Embeddings": "search.embeddings",
}

// fieldChanges returns the keys of the exported fields that differ. It descends into structs.
func fieldChanges(prefix string, before, after reflect.Value) []string {
	var keys []string
	for i := range before.NumField() {
		field := before.Type().Field(i)
		if !field.IsExported() || reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
			continue
		}
		name := prefix + field.Name
		switch key, named := keysOf[name]; {
		case named:
			keys = append(keys, key)
		case field.Anonymous: // it has no key in the file
			keys = append(keys, fieldChanges(prefix, before.Field(i), after.Field(i))...)
		case field.Type.Kind() == reflect.Struct:
			keys = append(keys, fieldChanges(name+".", before.Field(i), after.Field(i))...)
		default:
			keys = append(keys, keyOf(name))
		}
	}
	return keys
}

// keyOf returns the key of a field: that of Sandbox.CPUs is sandbox.cpus.
func keyOf(path string) string {
	words := strings.Split(path, ".")
	for i, word := range words {
		first, size := utf8.DecodeRuneInString(word)
		if second, _ := utf8.DecodeRuneInString(word[size:]); unicode.IsUpper(second) {
			words[i] = strings.ToLower(word)
			continue
		}
		words[i] = string(unicode.ToLower(first)) + word[size:]
	}
	return strings.Join(words, ".")
}
