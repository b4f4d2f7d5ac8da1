package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
)

func TestChanges(t *testing.T) {
	const base = `mcpServers:
  files: {command: serve, args: [/srv]}
  crm: {url: "https://crm.example.com/mcp"}
servers:
  files: {allow: [read]}
`
	tests := []struct {
		name, text    string
		live, restart []string
	}{
		{"nothing", base, nil, nil},
		{"only the order and a comment",
			"# moved\nservers: {files: {allow: [read]}}\nmcpServers:\n  crm: {url: " +
				"\"https://crm.example.com/mcp\"}\n  files: {args: [/srv], command: serve}\n", nil, nil},
		{"a tool is denied", strings.Replace(base, "allow: [read]", "deny: [read]", 1), []string{"servers.files"}, nil},
		{"a tool's risk", strings.Replace(base, "allow: [read]", "tools: {read: {risk: write}}", 1),
			[]string{"servers.files"}, nil},
		{"settings of a server that had none", base + "  crm: {rate: 1/s}\n", []string{"servers.crm"}, nil},
		{"budgets and rates", base + "limits: {calls: 5, rate: 1/s}\n", []string{"limits"}, nil},
		{"policies", base + "policies: [rules.cedar]\n", []string{"policies"}, nil},
		{"another argument", strings.Replace(base, "/srv", "/tmp", 1), []string{"mcpServers.files"}, nil},
		{"a server more and one less", strings.Replace(base, "crm:", "mail:", 1),
			[]string{"mcpServers.crm", "mcpServers.mail"}, nil},
		{"a server is disabled", strings.Replace(base, "args: [/srv]", "disabled: true", 1) + "",
			[]string{"mcpServers.files"}, nil},
		{"an issuer", base + "auth: {issuer: \"https://a.example\", audience: \"https://b.example/mcp\"}\n",
			[]string{"auth"}, nil},
		{"the time of calls", base + "limits: {callTimeout: 5s}\n", nil, []string{"limits.callTimeout"}},
		{"the profile", base + "limits: {profile: wide}\n", nil,
			[]string{"limits.profile", "limits.stderr", "limits.stdout"}},
		{"the sandbox", base + "sandbox: {cpus: 2, memory: 1GiB}\n", nil, []string{"sandbox.cpus", "sandbox.memory"}},
		{"the log and recordings", base + "audit: {path: log}\nreplay: {keep: 1h}\n", nil,
			[]string{"audit.path", "replay.keep"}},
		{"placeholders", base + "redaction: {placeholders: true}\n", nil, []string{"redaction.placeholders"}},
		{"which tools are seen", base + "profiles: {all: {default: true, servers: [\"*\"]}}\n",
			[]string{"profiles"}, nil},
		{"both kinds", strings.Replace(base, "allow: [read]", "deny: [read]", 1) + "sandbox: {pool: 0}\n",
			[]string{"servers.files"}, []string{"sandbox.pool"}},
	}
	load := func(text string) *config.Config {
		t.Helper()
		file := filepath.Join(t.TempDir(), "airlock.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(file, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		c.File = "" // each case has its own directory
		return c
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			live, restart := config.Changes(load(base), load(test.text))
			if !slices.Equal(live, test.live) || !slices.Equal(restart, test.restart) {
				t.Errorf("got %q live and %q after a restart, want %q and %q", live, restart, test.live, test.restart)
			}
		})
	}
}
