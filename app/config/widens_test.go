package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
)

// issue 23: a change that may permit more waits for a person while a host is connected.
func TestWidens(t *testing.T) {
	const base = `
mcpServers: {files: {command: cat}, crm: {command: cat}}
servers: {files: {allow: [read, write], deny: [drop], tools: {move: {risk: destructive}}}}
limits: {calls: 50}
`
	tests := []struct {
		name, after string
		want        []string
	}{
		{"nothing", base, nil},
		{"a comment", base + "# more\n", nil},
		{"a server less", "mcpServers: {files: {command: cat}}\nservers: {files: {allow: [read, write], deny: " +
			"[drop], tools: {move: {risk: destructive}}}}\nlimits: {calls: 50}\n", nil},
		{"a server more", base + "\n", nil},
		{"another command", "mcpServers: {files: {command: sh}, crm: {command: cat}}\nservers: {files: {allow: " +
			"[read, write], deny: [drop], tools: {move: {risk: destructive}}}}\nlimits: {calls: 50}\n",
			[]string{"mcpServers.files"}},
		{"one allowed less and one denied more",
			"mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {allow: [read], deny: [drop, " +
				"write], tools: {move: {risk: destructive}}}}\nlimits: {calls: 50}\n", nil},
		{"one allowed more",
			"mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {allow: [read, write, " +
				"drop2], deny: [drop], tools: {move: {risk: destructive}}}}\nlimits: {calls: 50}\n",
			[]string{"servers.files"}},
		{"one denied less", "mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {allow: " +
			"[read, write], tools: {move: {risk: destructive}}}}\nlimits: {calls: 50}\n", []string{"servers.files"}},
		{"a risk was lowered",
			"mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {allow: [read, write], deny: " +
				"[drop], tools: {move: {risk: read}}}}\nlimits: {calls: 50}\n", []string{"servers.files"}},
		{"a risk was removed",
			"mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {allow: [read, write], deny: " +
				"[drop]}}\nlimits: {calls: 50}\n", []string{"servers.files"}},
		{"annotations are trusted",
			"mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {trustAnnotations: true, " +
				"allow: [read, write], deny: [drop], tools: {move: {risk: destructive}}}}\nlimits: {calls: 50}\n",
			[]string{"servers.files"}},
		{"a lower limit", "mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {allow: [read, " +
			"write], deny: [drop], tools: {move: {risk: destructive}}}}\nlimits: {calls: 5}\n", nil},
		{"a higher limit", "mcpServers: {files: {command: cat}, crm: {command: cat}}\nservers: {files: {allow: " +
			"[read, write], deny: [drop], tools: {move: {risk: destructive}}}}\nlimits: {calls: 500}\n",
			[]string{"limits"}},
		{"a profile more", base + "profiles: {small: {servers: [files]}}\n", []string{"profiles"}},
		{"another audit log", base + "audit: {path: /elsewhere}\n", []string{"audit.path"}},
	}
	read := func(text string) *config.Config {
		t.Helper()
		c, err := config.Read("/etc/airlock.yaml", []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read(base)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := config.Widens(before, read(test.after)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Issue 23: the end of a profile ends its credentials at once, and does not wait for a person.
func TestARemovedProfileDoesNotWiden(t *testing.T) {
	read := func(profiles string) *config.Config {
		t.Helper()
		c, err := config.Read("/etc/airlock.yaml", []byte("mcpServers: {files: {command: cat}, crm: {command: cat}}\n"+
			profiles), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const both = "profiles: {small: {servers: [files]}, large: {servers: [files, crm]}}\n"
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"one of two":   {both, "profiles: {small: {servers: [files]}}\n", nil},
		"the last one": {"profiles: {small: {servers: [files]}}\n", "", nil},
		"one grows": {"profiles: {small: {servers: [files]}}\n", "profiles: {small: {servers: [files, crm]}}\n",
			[]string{"profiles"}},
		// Issue 27: fewer servers and tools need no confirmation.
		"a server less": {both, "profiles: {small: {servers: [files]}, large: {servers: [crm]}}\n", nil},
		"a tool less": {"profiles: {small: {servers: {files: [read, write]}}}\n",
			"profiles: {small: {servers: {files: [read]}}}\n", nil},
		"a tool in place of another": {"profiles: {small: {servers: {files: [read, write]}}}\n",
			"profiles: {small: {servers: {files: [read, move]}}}\n", []string{"profiles"}},
		"other hosts": {"profiles: {small: {servers: [files], network: [a.example:443]}}\n",
			"profiles: {small: {servers: [files]}}\n", []string{"profiles"}},
		"another name": {"profiles: {small: {servers: [files]}}\n", "profiles: {tiny: {servers: [files]}}\n",
			[]string{"profiles"}},
		"the default": {"profiles: {small: {default: true, servers: [files]}}\n", "", []string{"profiles"}},
	} {
		if got := config.Widens(read(test.before), read(test.after)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// Issue 23: the removal of a right, or of a member of a role, waited for a person while agents were served.
func TestARemovedRightDoesNotWiden(t *testing.T) {
	const (
		issuer = "issuer: https://id.example, audience: https://airlock.example/mcp, "
		scopes = "scopes: {a: {rights: [run]}, b: {rights: [run, admin]}, c: {rights: [audit], profile: small}}, "
		roles  = "roles: {fin: {groups: [f, g], principals: [carl]}, ops: {groups: [o]}}, "
		signIn = "signIn: {clientId: x, groups: {staff: {rights: [run, approve]}, ops: {rights: [admin]}}, " +
			"everyone: {rights: [run], profile: small}}"
	)
	read := func(auth string) *config.Config {
		t.Helper()
		c, err := config.Read("/etc/airlock.yaml", []byte("mcpServers: {files: {command: cat}}\n"+
			"profiles: {small: {servers: [files]}}\nauth: {"+auth+"}\n"),
			func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	whole := issuer + scopes + roles + signIn
	before := read(whole)
	for name, test := range map[string]struct {
		was, is string
		widens  bool
	}{
		"a right":                          {"[run, admin]", "[run]", false},
		"another right":                    {"[run, admin]", "[run, audit]", true},
		"a scope":                          {"b: {rights: [run, admin]}, ", "", false},
		"a scope with a profile":           {", c: {rights: [audit], profile: small}", "", true},
		"a profile":                        {"[audit], profile: small", "[audit]", true},
		"a profile for a scope":            {"a: {rights: [run]}", "a: {rights: [run], profile: small}", true},
		"another scope":                    {"scopes: {", "scopes: {d: {rights: [run]}, ", true},
		"all scopes":                       {scopes, "", true},
		"a member of a role":               {"principals: [carl]", "principals: []", false},
		"a group of a role":                {"[f, g]", "[f]", false},
		"a role":                           {", ops: {groups: [o]}", "", false},
		"another member":                   {"[carl]", "[carl, dora]", true},
		"a member in exchange for another": {"[carl]", "[dora]", true},
		"another role":                     {"roles: {", "roles: {new: {groups: [o]}, ", true},
		"a group of people":                {", ops: {rights: [admin]}", "", false},
		"a right of a group":               {"[run, approve]", "[run]", false},
		"more for a group":                 {"[run, approve]", "[run, approve, audit]", true},
		"more for everyone":                {"everyone: {rights: [run]", "everyone: {rights: [run, audit]", true},
		"everyone without a profile":       {"[run], profile: small}}", "[run]}}", true},
		"another client":                   {"clientId: x", "clientId: y", true},
		"another issuer":                   {"id.example", "other.example", true},
		"the issuer":                       {issuer + scopes + roles + signIn, roles, false},
		"the issuer, and a new member":     {issuer + scopes + roles + signIn, "roles: {fin: {groups: [x]}}", true},
	} {
		if !strings.Contains(whole, test.was) {
			t.Fatalf("%s: nothing is changed", name)
		}
		got := config.Widens(before, read(strings.Replace(whole, test.was, test.is, 1)))
		if want := map[bool][]string{true: {"auth"}}[test.widens]; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
