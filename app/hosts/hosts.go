// Package hosts reads and edits the configuration files of agent hosts: it finds the files and
// their MCP servers, replaces the servers by Airlock, and can undo that. It changes only the
// requested entries: comments, order and all other keys of a file stay.
package hosts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Host is a program that connects its model to MCP servers.
type Host struct {
	ID    string // as on the command line
	Title string // as people know it

	format  format
	key     string                     // of the mapping from names to servers; a dot separates nested keys
	user    func(Environment) []string // the files for all projects; init creates the first if none exists
	project []string                   // the files in a project's directory
	expand  expansion
}

// expansion is the syntax of the variables that a host replaces in its file.
type expansion int

const (
	expandNothing expansion = iota // ${X} is plain text
	expandBraces                   // ${X}, ${X:-default}, ${env:X} and the like, as Airlock does
	expandDollar                   // $X as well
	expandEnv                      // {env:X}, and nothing else
)

// Environment has the inputs that determine the paths of files.
type Environment struct {
	Home      string                      // the user's home directory
	Directory string                      // of the project, absolute
	Lookup    func(string) (string, bool) // os.LookupEnv outside tests
}

// config returns the directory for configuration files (XDG Base Directory 0.8).
func (e Environment) config() string {
	if dir, _ := e.Lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(e.Home, ".config")
}

// directory returns the absolute path in an environment variable, or the directory below the home directory.
func (e Environment) directory(variable, name string) string {
	if dir, _ := e.Lookup(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(e.Home, name)
}

// editors returns the path of a file in the user's directory of VS Code, and of its other editions.
func (e Environment) editors(path ...string) (files []string) {
	for _, edition := range []string{"Code", "Code - Insiders", "VSCodium"} {
		files = append(files, filepath.Join(append([]string{e.config(), edition, "User"}, path...)...))
	}
	return files
}

// All returns the hosts that Airlock knows, in alphabetical order of their IDs.
func All() []Host {
	return []Host{
		{
			ID: "claude-code", Title: "Claude Code", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			project: []string{".mcp.json"},
			user:    func(e Environment) []string { return []string{filepath.Join(e.Home, ".claude.json")} },
		},
		{
			ID: "claude-desktop", Title: "Claude Desktop", format: jsonFormat, key: "mcpServers",
			user: func(e Environment) []string {
				return []string{filepath.Join(e.config(), "Claude", "claude_desktop_config.json")}
			},
		},
		{
			// The extension, the CLI and the SDK share the first file since Cline 4.0. The others are those of the
			// extension before.
			ID: "cline", Title: "Cline", format: jsonFormat, key: "mcpServers",
			user: func(e Environment) []string {
				if path, _ := e.Lookup("CLINE_MCP_SETTINGS_PATH"); filepath.IsAbs(path) {
					return []string{path}
				}
				const name = "cline_mcp_settings.json"
				shared := filepath.Join(e.Home, ".cline", "data", "settings", name)
				return append([]string{shared},
					e.editors("globalStorage", "saoudrizwan.claude-dev", "settings", name)...)
			},
		},
		{
			ID: "codex", Title: "Codex", format: tomlFormat, key: "mcp_servers",
			project: []string{".codex/config.toml"},
			user: func(e Environment) []string {
				return []string{filepath.Join(e.directory("CODEX_HOME", ".codex"), "config.toml")}
			},
		},
		{
			ID: "copilot-cli", Title: "Copilot CLI", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			project: []string{".github/mcp.json"},
			user: func(e Environment) []string {
				return []string{filepath.Join(e.directory("COPILOT_HOME", ".copilot"), "mcp-config.json")}
			},
		},
		{
			ID: "copilot-jetbrains", Title: "Copilot in JetBrains IDEs", format: jsonFormat, key: "servers",
			user: func(e Environment) []string {
				return []string{filepath.Join(e.config(), "github-copilot", "intellij", "mcp.json")}
			},
		},
		{
			ID: "cursor", Title: "Cursor", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			project: []string{".cursor/mcp.json"},
			user:    func(e Environment) []string { return []string{filepath.Join(e.Home, ".cursor", "mcp.json")} },
		},
		{
			ID: "gemini", Title: "Gemini CLI", format: jsonFormat, key: "mcpServers", expand: expandDollar,
			project: []string{".gemini/settings.json"},
			user: func(e Environment) []string {
				return []string{filepath.Join(e.Home, ".gemini", "settings.json")}
			},
		},
		{
			ID: "goose", Title: "Goose", format: yamlFormat, key: "extensions",
			user: func(e Environment) []string { return []string{filepath.Join(e.config(), "goose", "config.yaml")} },
		},
		{
			ID: "junie", Title: "JetBrains Junie", format: jsonFormat, key: "mcpServers",
			project: []string{".junie/mcp/mcp.json"},
			user: func(e Environment) []string {
				return []string{filepath.Join(e.Home, ".junie", "mcp", "mcp.json")}
			},
		},
		{
			ID: "opencode", Title: "OpenCode", format: openCodeFormat, key: "mcp", expand: expandEnv,
			project: []string{"opencode.json", "opencode.jsonc", ".opencode/opencode.json",
				".opencode/opencode.jsonc"},
			user: func(e Environment) []string {
				directory := filepath.Join(e.config(), "opencode")
				files := []string{
					filepath.Join(directory, "opencode.json"), filepath.Join(directory, "opencode.jsonc"),
				}
				if path, _ := e.Lookup("OPENCODE_CONFIG"); filepath.IsAbs(path) && !slices.Contains(files, path) {
					files = append(files, path)
				}
				return files
			},
		},
		{
			ID: "vscode", Title: "VS Code", format: jsonFormat, key: "servers", expand: expandBraces,
			project: []string{".vscode/mcp.json"},
			user:    func(e Environment) []string { return e.editors("mcp.json") },
		},
		{
			ID: "windsurf", Title: "Windsurf", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			user: func(e Environment) []string { // of the editor, and of its plugin for JetBrains' IDEs
				return []string{
					filepath.Join(e.Home, ".codeium", "windsurf", "mcp_config.json"),
					filepath.Join(e.Home, ".codeium", "mcp_config.json"),
				}
			},
		},
		{
			ID: "zed", Title: "Zed", format: jsonFormat, key: "context_servers",
			project: []string{".zed/settings.json"},
			user: func(e Environment) []string {
				return []string{filepath.Join(e.config(), "zed", "settings.json")}
			},
		},
	}
}

// Find returns the host with the ID, and whether Airlock knows it.
func Find(id string) (Host, bool) {
	for _, h := range All() {
		if h.ID == id {
			return h, true
		}
	}
	return Host{}, false
}

// of returns the host with the key that its file uses: OpenCode 2 has its servers one level deeper.
func (h Host) of(data []byte) Host {
	if h.ID == "opencode" {
		servers, err := h.format.servers(data, h.key)
		if deeper := servers["servers"]; err == nil && deeper != nil && deeper.openCode().text("command", "url") == "" {
			h.key += ".servers"
		}
	}
	return h
}

// UserFile returns the path of the host's configuration for all projects: the first that exists, or the first.
func (h Host) UserFile(e Environment) string { return h.userFiles(e)[0] }

// userFiles returns the files for all projects that exist, or the first if none exists.
func (h Host) userFiles(e Environment) []string {
	files := h.user(e)
	existing := slices.DeleteFunc(slices.Clone(files), func(path string) bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
	if len(existing) == 0 {
		return files[:1]
	}
	return existing
}
