package config_test

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/server/servertest"
)

// A configuration has one meaning: members that are repeated, unknown or in another case are refused,
// also in its objects (issue 24).
func TestAmbiguousConfigurations(t *testing.T) {
	example := map[string]any{
		"face":       map[string]any{"callTool": true},
		"limits":     map[string]any{"wallTime": "10s"},
		"mcpServers": map[string]any{"files": map[string]any{"command": "node", "args": []any{"server.js"}}},
		"servers":    map[string]any{"files": map[string]any{"allow": []any{"*"}}},
	}
	read := func(text string) error {
		_, err := config.Read("airlock.yaml", []byte(text), func(string) (string, bool) { return "", false })
		return err
	}
	tried := 0
	for what, text := range servertest.Ambiguous(t, example) {
		switch {
		// The name of a server can be any.
		case strings.Contains(what, " in mcpServers") && !strings.Contains(what, " in files"),
			strings.Contains(what, " in servers") && !strings.Contains(what, " in files"):
			continue
		case !strings.Contains(what, "member") && !strings.Contains(what, "repeated") &&
			!strings.Contains(what, "case") && !strings.Contains(what, "UTF-8"):
			continue // YAML
		}
		tried++
		if err := read(text); err == nil {
			t.Errorf("with %s: got no error for %s", what, text)
		}
	}
	if tried < 20 {
		t.Errorf("tried %d configurations", tried)
	}
}
