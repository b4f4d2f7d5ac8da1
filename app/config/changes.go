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
// servers and their settings, profiles, auth, the limits of calls and the policies. restart are the
// changed keys that need a restart. Both are sorted, and empty if nothing has changed.
func Changes(before, after *Config) (live, restart []string) {
	live = serverChanges(before, after)
	for _, part := range []struct {
		key        string
		was, isNow any
	}{
		{"policies", before.Policies, after.Policies},
		{"profiles", before.Profiles, after.Profiles},
		{"profiles", before.DefaultProfile, after.DefaultProfile},
		{"auth", before.Auth, after.Auth},
		{"registry", before.Registry, after.Registry}, // read by commands only
	} {
		if !reflect.DeepEqual(part.was, part.isNow) {
			live = append(live, part.key)
		}
	}
	was, is := before.Limits.Calls, after.Limits.Calls
	was.Timeout, is.Timeout = 0, 0 // applies to servers, which are compared separately
	if was != is {
		live = append(live, "limits")
	}
	restart = fieldChanges("", withoutLive(before), withoutLive(after))
	slices.Sort(live)
	slices.Sort(restart)
	return slices.Compact(live), slices.Compact(restart)
}

// withoutLive returns c without the servers and without the values that can change while
// Airlock serves.
func withoutLive(c *Config) reflect.Value {
	rest := *c
	rest.Servers, rest.Policies, rest.Profiles, rest.DefaultProfile, rest.Auth = nil, nil, nil, "", Auth{}
	rest.Registry = Registry{}
	rest.Credentials = nil // follow from other keys
	rest.Limits.Calls = CallLimits{Timeout: c.Limits.Calls.Timeout}
	rest.Sandbox.Asked = nil // follows from other keys
	return reflect.ValueOf(rest)
}

// serverChanges returns the keys of the servers that differ: mcpServers.X if its connection differs
// or only one configuration has it, otherwise servers.X.
func serverChanges(before, after *Config) (live []string) {
	connect, removed := Reconnect(before, after)
	for _, id := range slices.Concat(connect, removed) {
		live = append(live, "mcpServers."+id)
	}
	for _, server := range after.Servers {
		old, found := before.Server(server.ID)
		if found && !slices.Contains(connect, server.ID) && !reflect.DeepEqual(old.Settings, server.Settings) {
			live = append(live, "servers."+server.ID)
		}
	}
	return live
}

// Reconnect returns the IDs of the servers of after that before does not have or connects in another
// way, and of those that only before has.
func Reconnect(before, after *Config) (connect, removed []string) {
	for _, server := range after.Servers {
		old, found := before.Server(server.ID)
		if !found || !reflect.DeepEqual(connection(old, before), connection(server, after)) {
			connect = append(connect, server.ID)
		}
	}
	for _, server := range before.Servers {
		if _, found := after.Server(server.ID); !found {
			removed = append(removed, server.ID)
		}
	}
	return connect, removed
}

// Server returns the enabled server with an ID.
func (c *Config) Server(id string) (Server, bool) {
	at := slices.IndexFunc(c.Servers, func(s Server) bool { return s.ID == id })
	if at < 0 {
		return Server{}, false
	}
	return c.Servers[at], true
}

// connection returns the part of a server's configuration that its connection is made with.
func connection(server Server, c *Config) Server {
	server.Settings = Settings{OAuth: server.Settings.OAuth, Elicitation: server.Settings.Elicitation,
		Sandbox: server.Settings.Sandbox}
	server.line, server.column = 0, 0
	if server.CallTimeout == c.Limits.Calls.Timeout {
		server.CallTimeout = 0 // the default
	}
	return server
}

// keysOf maps fields to their keys, if keyOf does not derive them.
var keysOf = map[string]string{
	"File": "the file itself", "Placeholders": "redaction.placeholders",
	"Limits.Calls": "limits.callTimeout", "Kernel.Models": "models",
	"Personal": "redaction.personalData",
	"Refresh":  "tools.ttl", "Embeddings": "search.embeddings",
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
