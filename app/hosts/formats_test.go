package hosts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/hosts"
)

// write writes files below a new home directory, and returns its environment.
func write(t *testing.T, files map[string]string) hosts.Environment {
	t.Helper()
	e := home(t)
	for path, content := range files {
		path = filepath.Join(e.Home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "HOME", e.Home)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// Hosts keep their servers in several files and forms, and disable servers in other files. Servers that a host has
// disabled stay in its files (issue 27, item 19).
func TestFormsOfHosts(t *testing.T) {
	const two = `{"mcpServers": {"on": {"command": "on"}, "off": {"command": "off"}}}`
	const cline = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
	tests := []struct {
		name, path string // of the file that is changed
		files      map[string]string
		want       []string // in the configuration and the file
		not        []string // neither in the configuration
	}{
		{"OpenCode 2", ".config/opencode/opencode.jsonc", map[string]string{".config/opencode/opencode.jsonc": `{
  // mine
  "mcp": {
    "timeout": {"startup": 1},
    "servers": {
      "on": {"type": "local", "command": ["on", "x"], "timeout": {"startup": 90000, "request": 120000}},
      "off": {"type": "local", "command": ["off"], "disabled": true},
    },
  },
}`}, []string{"command: \"on\"", "startTimeout: 1m30s", "callTimeout: 2m0s", `"airlock": {`, `"off": {"type"`,
			`"request": 660000`, "// mine"}, []string{"command: \"off\"", "command: off"}},
		{"Cline's extension before 4.0", cline, map[string]string{cline: `{"mcpServers": {
  "on": {"command": "on", "timeout": 120, "disabled": false}, "off": {"command": "off", "disabled": true}}}`},
			[]string{"callTimeout: 2m0s", `"airlock": {`, `"off": {`}, []string{"command: off"}},
		{"VSCodium", ".config/VSCodium/User/mcp.json", map[string]string{
			".config/VSCodium/User/mcp.json": `{"servers": {"on": {"command": "on"}}}`},
			[]string{"command: \"on\"", `"airlock": {`}, nil},
		{"a project of Codex", "project/.codex/config.toml", map[string]string{
			"project/.codex/config.toml": "[mcp_servers.on]\ncommand = \"on\"\n"},
			[]string{"command: \"on\"", `[mcp_servers.airlock]`}, nil},
		{"Zed's command as a mapping", ".config/zed/settings.json", map[string]string{".config/zed/settings.json": `{
  "context_servers": {"on": {"command": {"path": "on", "args": ["x"], "env": {"A": "b"}}, "settings": {}}}}`},
			[]string{"A: b", "- x", `"airlock": {`}, nil},
		{"Codex's times", ".codex/config.toml", map[string]string{".codex/config.toml": `
[mcp_servers.on]
command = "on"
startup_timeout_ms = 45000
tool_timeout_sec = 90
`}, []string{"startTimeout: 45s", "callTimeout: 1m30s"}, nil},
		{"Gemini CLI's list", ".gemini/settings.json", map[string]string{
			".gemini/settings.json": `{"mcp": {"excluded": ["off"]}, ` + two[1:]},
			[]string{`"off": {"command"`, `"airlock": {`}, []string{"command: off"}},
		{"Gemini CLI's other file", ".gemini/settings.json", map[string]string{".gemini/settings.json": two,
			".gemini/mcp-server-enablement.json": `{"off": {"enabled": false}}`},
			[]string{`"off": {"command"`}, []string{"command: off"}},
		{"Copilot CLI's settings", ".copilot/mcp-config.json", map[string]string{".copilot/mcp-config.json": two,
			".copilot/settings.json": `{"disabledMcpServers": ["off"]}`},
			[]string{`"off": {"command"`, `"tools": [`}, []string{"command: off"}},
		{"a project of Claude Code", "project/.mcp.json", map[string]string{"project/.mcp.json": two,
			".claude.json": `{"projects": {"HOME/project": {"disabledMcpjsonServers": ["off"]}}}`},
			[]string{`"off": {"command"`}, []string{"command: off"}},
		{"settings of a project of Claude Code", "project/.mcp.json", map[string]string{"project/.mcp.json": two,
			"project/.claude/settings.local.json": `{"disabledMcpjsonServers": ["off"]}`},
			[]string{`"off": {"command"`}, []string{"command: off"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := write(t, test.files)
			before := files(t, e.Home)
			found, err := hosts.Look(e, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			p, err := hosts.NewPlan(found, filepath.Join(e.Home, "airlock.yaml"), nil, command)
			if err != nil {
				t.Fatal(err)
			}
			record := filepath.Join(t.TempDir(), "hosts.json")
			if err := p.Apply(record, validate); err != nil {
				t.Fatal(err)
			}
			after := files(t, e.Home)
			both := string(after["airlock.yaml"]) + string(after[test.path])
			for _, want := range test.want {
				if !strings.Contains(both, want) {
					t.Errorf("%q is missing in:\n%s", want, both)
				}
			}
			for _, not := range test.not {
				if strings.Contains(both, not) {
					t.Errorf("%q is in:\n%s", not, both)
				}
			}
			if _, err := hosts.Undo(record); err != nil {
				t.Fatal(err)
			}
			restored := files(t, e.Home)
			delete(restored, "airlock.yaml")
			for path := range restored {
				if string(restored[path]) != string(before[path]) {
					t.Errorf("after undo, %s is\n%s\nand was\n%s", path, restored[path], before[path])
				}
			}
		})
	}
}

// Undo adds the servers of OpenCode 2 again after its file was changed.
func TestUndoOfNestedServers(t *testing.T) {
	const path = ".config/opencode/opencode.json"
	e := write(t, map[string]string{path: `{
  "theme": "dark",
  "mcp": {
    "servers": {
      "on": {"type": "local", "command": ["on"]}
    }
  }
}
`})
	record := filepath.Join(e.Home, "hosts.json")
	if err := plan(t, e).Apply(record, validate); err != nil {
		t.Fatal(err)
	}
	text := string(files(t, e.Home)[path])
	changed := []byte(strings.Replace(text, "dark", "light", 1))
	if err := os.WriteFile(filepath.Join(e.Home, path), changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if undone, err := hosts.Undo(record); err != nil || undone[0].How != "edited" {
		t.Fatalf("got %v, %v", undone, err)
	}
	got := string(files(t, e.Home)[path])
	if strings.Contains(got, "airlock") || !strings.Contains(got, `"on": {"type": "local", "command": ["on"]}`) ||
		!strings.Contains(got, "light") {
		t.Errorf("got\n%s", got)
	}
}

// A host that starts only the servers of a list would not start Airlock: its file is not changed.
func TestAListOfAllowedServers(t *testing.T) {
	e := write(t, map[string]string{
		".gemini/settings.json": `{"mcp": {"allowed": ["on"]}, "mcpServers": {"on": {"command": "on"}}}`})
	p := plan(t, e)
	if len(p.Changes) != 0 || len(p.Skipped) != 1 || !strings.Contains(fmt.Sprint(p.Skipped[0].Err), "mcp.allowed") {
		t.Errorf("got %+v", p)
	}
}
