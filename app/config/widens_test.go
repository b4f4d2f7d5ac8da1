package config_test

import (
	"slices"
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
		"another name": {"profiles: {small: {servers: [files]}}\n", "profiles: {tiny: {servers: [files]}}\n",
			[]string{"profiles"}},
		"the default": {"profiles: {small: {default: true, servers: [files]}}\n", "", []string{"profiles"}},
	} {
		if got := config.Widens(read(test.before), read(test.after)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
