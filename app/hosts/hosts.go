// Package hosts reads and edits the configuration files of agent hosts: it finds the files and
// their MCP servers, replaces the servers by Airlock, and can undo that. It changes only the
// requested entries: comments, order and all other keys of a file stay.
package hosts

import (
	"path/filepath"
)

// Host is a program that connects its model to MCP servers.
type Host struct {
	ID    string // as on the command line
	Title string // as people know it

	format  format
	key     string // of the mapping from names to servers
	user    func(Environment) string
	project string // in a project's directory; empty if the host has no such file
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

// All returns the hosts that Airlock knows, in alphabetical order of their IDs.
func All() []Host {
	return []Host{
		{
			ID: "claude-code", Title: "Claude Code", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			project: ".mcp.json",
			user:    func(e Environment) string { return filepath.Join(e.Home, ".claude.json") },
		},
		{
			ID: "claude-desktop", Title: "Claude Desktop", format: jsonFormat, key: "mcpServers",
			user: func(e Environment) string {
				return filepath.Join(
					e.config(), "Claude", "claude_desktop_config.json")
			},
		},
		{
			// The extension, the CLI and the SDK share this file since Cline 4.0.
			ID: "cline", Title: "Cline", format: jsonFormat, key: "mcpServers",
			user: func(e Environment) string {
				if path, _ := e.Lookup("CLINE_MCP_SETTINGS_PATH"); filepath.IsAbs(path) {
					return path
				}
				return filepath.Join(e.Home, ".cline", "data", "settings", "cline_mcp_settings.json")
			},
		},
		{
			ID: "codex", Title: "Codex", format: tomlFormat, key: "mcp_servers",
			user: func(e Environment) string {
				if dir, _ := e.Lookup("CODEX_HOME"); filepath.IsAbs(dir) {
					return filepath.Join(dir, "config.toml")
				}
				return filepath.Join(e.Home, ".codex", "config.toml")
			},
		},
		{
			ID: "copilot-cli", Title: "Copilot CLI", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			user: func(e Environment) string { return filepath.Join(e.Home, ".copilot", "mcp-config.json") },
		},
		{
			ID: "cursor", Title: "Cursor", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			project: ".cursor/mcp.json",
			user:    func(e Environment) string { return filepath.Join(e.Home, ".cursor", "mcp.json") },
		},
		{
			ID: "gemini", Title: "Gemini CLI", format: jsonFormat, key: "mcpServers", expand: expandDollar,
			project: ".gemini/settings.json",
			user:    func(e Environment) string { return filepath.Join(e.Home, ".gemini", "settings.json") },
		},
		{
			ID: "goose", Title: "Goose", format: yamlFormat, key: "extensions",
			user: func(e Environment) string { return filepath.Join(e.config(), "goose", "config.yaml") },
		},
		{
			ID: "junie", Title: "JetBrains Junie", format: jsonFormat, key: "mcpServers",
			project: ".junie/mcp/mcp.json",
			user:    func(e Environment) string { return filepath.Join(e.Home, ".junie", "mcp", "mcp.json") },
		},
		{
			ID: "opencode", Title: "OpenCode", format: openCodeFormat, key: "mcp", expand: expandEnv,
			project: "opencode.json",
			user:    func(e Environment) string { return filepath.Join(e.config(), "opencode", "opencode.json") },
		},
		{
			ID: "vscode", Title: "VS Code", format: jsonFormat, key: "servers", expand: expandBraces,
			project: ".vscode/mcp.json",
			user:    func(e Environment) string { return filepath.Join(e.config(), "Code", "User", "mcp.json") },
		},
		{
			ID: "windsurf", Title: "Windsurf", format: jsonFormat, key: "mcpServers", expand: expandBraces,
			user: func(e Environment) string {
				return filepath.Join(e.Home, ".codeium", "windsurf", "mcp_config.json")
			},
		},
		{
			ID: "zed", Title: "Zed", format: jsonFormat, key: "context_servers",
			user: func(e Environment) string { return filepath.Join(e.config(), "zed", "settings.json") },
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

// UserFile returns the path of the host's configuration for all projects.
func (h Host) UserFile(e Environment) string { return h.user(e) }
