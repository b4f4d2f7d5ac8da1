package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/catalog"
)

// Name is the name of Airlock's entry in a host's file.
const Name = "airlock"

// Command is the command with which a host starts Airlock.
type Command struct {
	Path string   // of the program, absolute
	Args []string // "mcp" and its flags
	Env  map[string]string
}

// Import is a server that is added to Airlock's configuration.
type Import struct {
	Entry Entry    // under its name in Airlock's configuration
	From  []string // the paths of the files that name it
	Was   string   // its name there, if Airlock's configuration has another server of that name
	// Unsigned reports whether the entry has no credentials. If the host signs in to such a server
	// by itself, the server works only in the host.
	Unsigned bool
}

// Change is the change of one host's file.
type Change struct {
	File   File
	Remove []string // names of servers that move to Airlock
	Stay   []Entry  // servers that stay with the host, each with the reason

	// Unset has the variables that the servers need and that this host cannot pass on to Airlock,
	// because it does not expand variables.
	Unset []string
}

// Plan has the changes that `airlock init` makes. Creating a plan changes nothing.
type Plan struct {
	Config  string // the path of Airlock's configuration
	Imports []Import
	Changes []Change
	Skipped []File // files that cannot be used, with Err, or that are registered already

	command   Command
	variables []string // that servers of the configuration need
	config    []byte   // the new content of Config
	before    []byte   // the old one; nil if there was no file
}

// NewPlan plans to move the servers of the files to the configuration at path config, whose content
// is before (nil if the file does not exist), and to register command in their place.
func NewPlan(files []File, config string, before []byte, command Command) (*Plan, error) {
	p := &Plan{Config: config, before: before, command: command}
	taken, err := p.existing()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if file.Err != nil || file.Registered && len(file.movable()) == 0 {
			p.Skipped = append(p.Skipped, file)
			continue
		}
		change := Change{File: file}
		for _, entry := range file.Entries {
			if entry.Stays != "" {
				change.Stay = append(change.Stay, entry)
				continue
			}
			change.Remove = append(change.Remove, entry.Name)
			p.take(entry, file, taken)
		}
		p.Changes = append(p.Changes, change)
	}
	slices.SortFunc(p.Imports, func(a, b Import) int { return cmp.Compare(a.Entry.Name, b.Entry.Name) })
	p.need(taken)
	return p, p.write()
}

// inherited are the variables that hosts pass to every server that they start, as the stdio clients
// of the official SDKs do.
var inherited = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// need notes the variables that the servers need, and the hosts that cannot pass
// them on.
func (p *Plan) need(servers map[string]*Entry) {
	for _, entry := range servers {
		for _, name := range entry.variables() {
			if !slices.Contains(p.variables, name) && !slices.Contains(inherited, name) {
				p.variables = append(p.variables, name)
			}
		}
	}
	slices.Sort(p.variables)
	for i := range p.Changes {
		if p.Changes[i].File.Host.reference("X") == "" {
			p.Changes[i].Unset = p.variables
		}
	}
}

// movable returns the entries that Airlock can import.
func (f File) movable() []Entry {
	return slices.DeleteFunc(slices.Clone(f.Entries), func(e Entry) bool { return e.Stays != "" })
}

// existing returns the modules of servers that the configuration has, by name.
func (p *Plan) existing() (map[string]*Entry, error) {
	servers, err := yamlFormat.servers(p.before, "mcpServers")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p.Config, err)
	}
	taken := map[string]*Entry{}
	for name, f := range servers {
		entry := Entry{
			Name: name, Type: f.text("type"), Command: f.text("command"), Args: f.texts("args"), Cwd: f.text("cwd"),
			URL: f.text("url"), Env: f.mapping("env"), Headers: f.mapping("headers"),
		}
		taken[catalog.ModuleName(name)] = &entry
	}
	return taken, nil
}

// take plans to import an entry. An entry that was imported before, possibly under another name, is
// not imported twice. If another server has the same name, the entry gets a new name.
func (p *Plan) take(entry Entry, file File, taken map[string]*Entry) {
	for _, known := range taken {
		if known.equal(entry) && catalog.ModuleName(
			strings.TrimSuffix(known.Name, "-"+file.Host.ID)) == catalog.ModuleName(entry.Name) {
			for i := range p.Imports {
				if p.Imports[i].Entry.Name == known.Name {
					p.Imports[i].From = append(p.Imports[i].From, file.Path)
				}
			}
			return
		}
	}
	was := entry.Name
	for n := 1; taken[catalog.ModuleName(entry.Name)] != nil; n++ {
		entry.Name = was + "-" + file.Host.ID
		if n > 1 {
			entry.Name = fmt.Sprintf("%s-%s-%d", was, file.Host.ID, n)
		}
	}
	taken[catalog.ModuleName(entry.Name)] = &entry
	added := Import{Entry: entry, From: []string{file.Path}, Unsigned: entry.isUnsigned()}
	if entry.Name != was {
		added.Was = was
	}
	p.Imports = append(p.Imports, added)
}

// write sets config to the new content of the configuration.
func (p *Plan) write() error {
	add := map[string]string{}
	for _, imported := range p.Imports {
		text, err := encodeYAML("", imported.Entry.Name, imported.Entry.settings())
		if err != nil {
			return fmt.Errorf("writing the server %q: %w", imported.Entry.Name, err)
		}
		add[imported.Entry.Name] = text
	}
	content := p.before
	if content == nil {
		content = []byte("# yaml-language-server: $schema=" + config.SchemaAddress + "\n" +
			"# Airlock's configuration. docs/configuration.md explains every key. This file may\n" +
			"# hold credentials: keep it private, or write env:NAME, keyring:NAME or age:NAME.\n")
	}
	var err error
	p.config = content
	if len(add) > 0 || p.before == nil {
		p.config, err = yamlFormat.checkedEdit(content, "mcpServers", nil, add)
	}
	if err != nil {
		return fmt.Errorf("adding servers to %s: %w", p.Config, err)
	}
	return nil
}

// TrustClaims adds to the configuration that the claims of these imported servers about their own tools are trusted.
// It is called before Apply.
func (p *Plan) TrustClaims(names []string) error {
	if len(names) == 0 {
		return nil
	}
	add := map[string]string{}
	for _, name := range names {
		text, err := yamlMember(name, map[string]any{"trustAnnotations": true})
		if err != nil {
			return fmt.Errorf("writing the settings of the server %q: %w", name, err)
		}
		add[name] = text
	}
	edited, err := yamlFormat.checkedEdit(p.config, "servers", nil, add)
	if err != nil {
		return fmt.Errorf("adding settings to %s: %w", p.Config, err)
	}
	p.config = edited
	return nil
}

// settings returns the entry as Airlock's configuration writes it.
func (e Entry) settings() written {
	return written{Type: e.Type, Command: e.Command, Args: e.Args, Cwd: e.Cwd, Env: e.Env, URL: e.URL,
		Headers: e.Headers, StartTimeout: e.StartTimeout}
}

// reference returns the host's syntax for a reference to a variable, or "" if it has none.
func (h Host) reference(variable string) string {
	switch h.ID {
	case "claude-code":
		return "${" + variable + ":-}"
	case "codex":
		return variable // in a list of names
	case "copilot-cli":
		return "${" + variable + "}"
	case "cursor", "vscode", "windsurf":
		return "${env:" + variable + "}"
	case "gemini":
		return "$" + variable
	case "opencode":
		return "{env:" + variable + "}"
	}
	return ""
}

// registration returns the entry of Airlock in the host's format. Hosts start servers with few
// variables, so the entry names those that Airlock needs.
func (h Host) registration(c Command, variables []string) written {
	out := written{Command: c.Path, Args: c.Args, Env: maps.Clone(c.Env)}
	for _, name := range variables {
		switch reference := h.reference(name); {
		case h.ID == "codex":
			out.EnvVars = append(out.EnvVars, name)
		case reference != "":
			if out.Env == nil {
				out.Env = map[string]string{}
			}
			out.Env[name] = reference
		}
	}
	const patience = 300 // seconds: a call may wait for a person
	switch h.ID {
	case "claude-code", "vscode":
		out.Type = "stdio"
	case "codex":
		out.ToolTimeout = patience
	case "goose":
		out = written{Name: Name, Type: "stdio", Enabled: true, Cmd: c.Path, Args: c.Args, Envs: c.Env,
			Timeout: patience}
	}
	return out
}

// Snippet returns a complete file of the host with Airlock as the only server, from which a user
// copies the entry by hand.
func (h Host) Snippet(c Command) (string, error) {
	entry, err := h.format.encode(h.key, Name, h.registration(c, nil))
	if err != nil {
		return "", fmt.Errorf("writing Airlock's entry for %s: %w", h.Title, err)
	}
	out, err := h.format.checkedEdit(nil, h.key, nil, map[string]string{Name: entry})
	return string(out), err
}
