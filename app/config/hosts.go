package config

import (
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// hostKeys are the keys that agent hosts write into an entry of mcpServers in addition to
// those that Airlock reads. They are ignored, each for the reason given. If loud is set,
// Airlock reports a finding, because a user may rely on the key. Permissions that a host's
// file grants are never granted by Airlock.
var hostKeys = []struct {
	key    string
	loud   bool
	reason string
	advice string
}{
	{"alwaysAllow", true, "grants nothing here: a host's approvals are not Airlock's",
		"decide with servers.<id>.allow or a policy"},
	{"autoApprove", true, "grants nothing here: a host's approvals are not Airlock's",
		"decide with servers.<id>.allow or a policy"},
	{"trust", true, "grants nothing here: a host's approvals are not Airlock's",
		"decide with servers.<id>.allow or a policy"},
	{"includeTools", true, "does not limit anything here", "deny the other tools with servers.<id>.deny"},
	{"excludeTools", true, "does not limit anything here", "deny them with servers.<id>.deny"},
	{"disabledTools", true, "does not limit anything here", "deny them with servers.<id>.deny"},
	{"tools", true, "does not limit anything here", "decide with servers.<id>.allow and servers.<id>.deny"},
	{"timeout", true, "is not read: hosts disagree on its unit", "set callTimeout, for example 60s"},
	{"envFile", true, "is not read", "set the variables before Airlock starts and write ${NAME} under env"},
	{"headersHelper", true, "is not run", "write ${NAME} under headers"},
	{"oauth", true, "is not read", "write a token as ${NAME} under headers"},
	{"auth", true, "is not read", "write a token as ${NAME} under headers"},
	{"authProviderType", true, "is not read", "write a token as ${NAME} under headers"},
	{"sandbox", true, "is VS Code's sandbox for the server itself, which Airlock does not start",
		"confine the server by its command"},
	{"sandboxEnabled", true, "is VS Code's sandbox for the server itself, which Airlock does not start",
		"confine the server by its command"},
	{"description", false, "is for people", ""},
	{"name", false, "is for people", ""},
	{"note", false, "is for people", ""},
	{"icon", false, "is for people", ""},
	{"gallery", false, "describes where VS Code found the server", ""},
	{"version", false, "lists which entry of VS Code's gallery it is", ""},
	{"dev", false, "is VS Code's mode for developing a server", ""},
	{"alwaysLoad", false, "is about a host's context, which holds no definitions here", ""},
	{"role", false, "is about how a host shows the server", ""},
}

// hostServer returns the keys of an mcpServers entry that only hosts write.
func (d *decoder) hostServer(disabled *bool) []field {
	enabled := true
	fields := []field{
		{key: "disabled", val: flag{disabled}},
		{key: "enabled", read: func(n *yaml.Node, path string) error {
			err := d.scalar(n, path, flag{&enabled})
			*disabled = *disabled || !enabled
			return err
		}},
	}
	for _, k := range hostKeys {
		fields = append(fields, field{key: k.key, read: func(n *yaml.Node, path string) error {
			if k.loud {
				d.note(n, path+" "+k.reason, k.advice)
			}
			return nil
		}})
	}
	return fields
}

// hostFiles are files in which a host keeps more than its MCP servers. All of their top-level
// keys except mcpServers are ignored, even those that are also keys of Airlock.
var hostFiles = []string{".claude.json", "claude_desktop_config.json", ".gemini/settings.json"}

// isHostFile reports whether the file is one of hostFiles.
func (d *decoder) isHostFile() bool {
	path := filepath.ToSlash(filepath.Join(d.dir, filepath.Base(d.file)))
	return slices.ContainsFunc(hostFiles, func(name string) bool { return strings.HasSuffix(path, "/"+name) })
}

// hostFields are the keys of such a file.
func (d *decoder) hostFields(root *yaml.Node, c *Config) []field {
	fields := []field{{key: "mcpServers", read: d.servers(c)}}
	for i := 0; root.Kind == yaml.MappingNode && i < len(root.Content); i += 2 {
		if key := root.Content[i].Value; key != "mcpServers" {
			fields = append(fields, ignored(key))
		}
	}
	return fields
}

// ignored returns a field for a key whose value is ignored.
func ignored(key string) field {
	return field{key: key, read: func(*yaml.Node, string) error { return nil }}
}

// isVSCodeFile reports whether root has the shape of VS Code's mcp.json, which lists the
// servers under the key servers.
func isVSCodeFile(root *yaml.Node) bool {
	servers := child(root, "servers")
	if servers == nil || servers.Kind != yaml.MappingNode || child(root, "mcpServers") != nil {
		return false
	}
	for i := 1; i < len(servers.Content); i += 2 {
		if child(servers.Content[i], "command") != nil || child(servers.Content[i], "url") != nil {
			return true
		}
	}
	return false
}

// vscodeFields are the keys of VS Code's mcp.json. Airlock's keys are not allowed beside
// them, because servers would have two meanings.
func (d *decoder) vscodeFields(c *Config) []field {
	return []field{
		{key: "servers", read: d.servers(c)},
		{key: "sandbox", read: func(n *yaml.Node, path string) error {
			if child(n, "network") != nil || child(n, "filesystem") != nil { // VS Code's sandbox for servers
				d.note(n, path+" is VS Code's sandbox for servers, which Airlock does not start",
					"confine a server by its command")
				return nil
			}
			return d.fail(n, "rename servers to mcpServers",
				"Airlock's key sandbox stands beside VS Code's key servers")
		}},
	}
}

// workspace returns the directory that ${workspaceFolder} means: the one that holds
// the file, or that holds the host's directory with the file in it.
func (d *decoder) workspace() string {
	switch filepath.Base(d.dir) {
	case ".vscode", ".cursor", ".gemini", ".roo":
		return filepath.Dir(d.dir)
	}
	return d.dir
}
