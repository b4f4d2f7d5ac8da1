package hosts

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// disabled returns the names of the servers of a file that the host has disabled elsewhere than in their entries. It
// returns an error if the host would not start Airlock either.
func (h Host) disabled(file File, e Environment) ([]string, error) {
	var off []string
	add := func(content map[string]any, key string) {
		parent, last := nested(content, key)
		off = append(off, fields(parent).texts(last)...)
	}
	switch {
	case h.ID == "claude-code" && file.Project:
		for _, name := range []string{"settings.json", "settings.local.json"} {
			add(contentOf(filepath.Join(e.Directory, ".claude", name)), "disabledMcpjsonServers")
		}
		projects, _ := contentOf(filepath.Join(e.Home, ".claude.json"))["projects"].(map[string]any)
		project, _ := projects[e.Directory].(map[string]any)
		add(project, "disabledMcpjsonServers")
	case h.ID == "copilot-cli":
		for _, name := range []string{"settings.json", "config.json"} {
			add(contentOf(filepath.Join(e.directory("COPILOT_HOME", ".copilot"), name)), "disabledMcpServers")
		}
	case h.ID == "gemini":
		content, _ := decodeJWCC(plainText(file.data)) // it was decoded before
		add(content, "mcp.excluded")
		states := contentOf(filepath.Join(e.Home, ".gemini", "mcp-server-enablement.json"))
		for name, value := range states {
			if state, _ := value.(map[string]any); !fields(state).flag("enabled", true) {
				off = append(off, name)
			}
		}
		parent, _ := nested(content, "mcp.allowed")
		if allowed := fields(parent).texts("allowed"); len(allowed) > 0 && !slices.Contains(allowed, Name) {
			return nil, fmt.Errorf("its mcp.allowed lacks %q, so Gemini CLI would not start Airlock: add it", Name)
		}
	}
	return off, nil
}

// Dialogs returns the files in which JetBrains' AI Assistant keeps servers. Only the settings of the IDE can change
// them.
func Dialogs(e Environment) []string {
	pattern := filepath.Join(e.config(), "JetBrains", "*", "options", "llm.mcpServers.xml")
	found, _ := filepath.Glob(pattern) // it is a valid pattern
	return found
}

// contentOf returns what a JSON file contains, or nothing if it cannot be read.
func contentOf(path string) map[string]any {
	data, _, err := readRegular(path)
	if err != nil {
		return nil
	}
	content, _ := decodeJWCC(plainText(data)) // a file that the host cannot read either disables nothing
	return content
}

func plainText(data []byte) []byte {
	plain, _ := decodeText(data)
	return plain
}

// names reports whether a list of names has this one. Gemini CLI ignores case.
func names(list []string, name string) bool {
	return slices.ContainsFunc(list, func(one string) bool { return strings.EqualFold(one, name) })
}
