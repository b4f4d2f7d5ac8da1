package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
)

// issue 27: edits of servers keep comments, order and everything else byte for byte.
func TestEditServerKeepsTheRest(t *testing.T) {
	const file = `# mine
mcpServers:
  # about one
  one: {command: serve, args: [/srv]} # inline

  two:
    command: "x y" # why
    env:
      TEXT: |
        several
        lines
profiles: {all: {servers: ["*"]}}
# settings
servers:
  one: {deny: [a]}
  two: {rate: 1/s}
`
	yes, no := true, false
	tests := []struct {
		name      string
		text      string
		edit      config.ServerEdit
		old, new  string // the only difference
		wantError error
	}{
		{"add", file, config.ServerEdit{ID: "new",
			Add: &config.ServerEntry{Command: "run", Args: []string{"a", "-b: c"}}},
			"        lines\n", "        lines\n  new:\n    command: run\n    args: [a, '-b: c']\n", nil},
		{"add an address", file, config.ServerEdit{ID: "n: 1", Add: &config.ServerEntry{URL: "https://a.example/#b"}},
			"        lines\n", "        lines\n  'n: 1':\n    url: https://a.example/#b\n", nil},
		{"add to nothing", "", config.ServerEdit{ID: "a", Add: &config.ServerEntry{Command: "b"}}, "",
			"mcpServers:\n  a:\n    command: b\n", nil},
		{"add to other keys", "limits: {calls: 3}", config.ServerEdit{ID: "a", Add: &config.ServerEntry{Command: "b"}},
			"}", "}\nmcpServers:\n  a:\n    command: b\n", nil},
		{"add to an empty mapping", "mcpServers: {} # none\nlimits: {calls: 3}\n",
			config.ServerEdit{ID: "a", Add: &config.ServerEntry{Command: "b"}}, "mcpServers: {} # none\n",
			"mcpServers: # none\n  a:\n    command: b\n", nil},
		{"add what exists", file, config.ServerEdit{ID: "one", Add: &config.ServerEntry{Command: "b"}}, "", "",
			config.ErrEntry},
		{"disable in a flow", file, config.ServerEdit{ID: "one", Disabled: &yes}, "one: {command",
			"one: {disabled: true, command",
			nil},
		{"disable in a flow after other characters", "mcpServers:\n  \"öd ☂\": {command: x}\n",
			config.ServerEdit{ID: "öd ☂", Disabled: &yes}, ": {command", ": {disabled: true, command", nil},
		{"enable in a flow after other characters", "mcpServers:\n  \"öd ☂\": {command: é, disabled: true}\n",
			config.ServerEdit{ID: "öd ☂", Disabled: &no}, "disabled: true", "disabled: false", nil},
		{"disable a block", file, config.ServerEdit{ID: "two", Disabled: &yes}, "  two:\n    command",
			"  two:\n    disabled: true\n    command", nil},
		{"enable what is enabled", file, config.ServerEdit{ID: "two", Disabled: &no}, "", "", nil},
		{"disable what is unknown", file, config.ServerEdit{ID: "three", Disabled: &yes}, "", "", config.ErrNoEntry},
		{"a file of JSON", `{"mcpServers": {"a": {"command": "b"}}}`, config.ServerEdit{ID: "a", Remove: true}, "", "",
			config.ErrUneditable},
		{"an alias", "mcpServers:\n  a: &x {command: b}\n  c: *x\n", config.ServerEdit{ID: "c", Disabled: &yes}, "", "",
			config.ErrUneditable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := config.EditServer([]byte(test.text), test.edit)
			if test.wantError != nil {
				if err == nil || !errors.Is(err, test.wantError) {
					t.Errorf("got %q, %v, want the error %v", got, err, test.wantError)
				}
				return
			}
			want := strings.Replace(test.text, test.old, test.new, 1)
			if err != nil || string(got) != want {
				t.Fatalf("got %v and\n%s\nwant\n%s", err, got, want)
			}
			path := filepath.Join(t.TempDir(), "airlock.yaml")
			if _, err := config.Read(path, got, os.LookupEnv); err != nil {
				t.Errorf("the result is not a configuration: %v", err)
			}
		})
	}
	removed, err := config.EditServer([]byte(file), config.ServerEdit{ID: "one", Remove: true})
	want := strings.NewReplacer("  # about one\n", "", "  one: {command: serve, args: [/srv]} # inline\n", "",
		"  one: {deny: [a]}\n", "").Replace(file)
	if err != nil || string(removed) != want {
		t.Errorf("removing: got %v and\n%s\nwant\n%s", err, removed, want)
	}
	// Both edits and their inverses give the same file again.
	disabled, err := config.EditServer([]byte(file), config.ServerEdit{ID: "two", Disabled: &yes})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := config.EditServer(disabled, config.ServerEdit{ID: "two", Disabled: &no}); err != nil ||
		string(back) != file {
		t.Errorf("disabled and enabled: got %v and\n%s", err, back)
	}
}
