package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/nearest"
)

// Containment configures the sandbox of a stdio server.
type Containment struct {
	// Packages are the npm or Python packages of the server's image, sorted. Those that its command names are added.
	Packages []string
	Network  []egress.Host // that the server may ask for; the policies decide about each connection
	Mounts   []ServerMount // sorted by path
	Memory   int64         // bytes; 0 means DefaultServerMemory
	CPUs     float64       // cores; 0 means 1
	PIDs     int           // processes and threads; 0 means DefaultServerPIDs
	Disk     int64         // bytes that the server may write outside of mounts; they are held in its memory
}

// ServerMount is a directory of the host that a contained server sees.
type ServerMount struct {
	Path     string // absolute, on the host
	At       string // absolute, in the sandbox
	Writable bool
}

// Defaults of Containment. A server of Node has about 12 threads and 100 MiB.
const (
	DefaultServerMemory = 512 << 20
	DefaultServerPIDs   = 256
	DefaultServerDisk   = 128 << 20
	maxMounts           = 32
)

// withDefaults returns c with its defaults set.
func (c Containment) withDefaults() Containment {
	c.Memory = cmp.Or(c.Memory, DefaultServerMemory)
	c.CPUs = cmp.Or(c.CPUs, 1)
	c.PIDs = cmp.Or(c.PIDs, DefaultServerPIDs)
	c.Disk = cmp.Or(c.Disk, min(DefaultServerDisk, c.Memory))
	return c
}

// containment reads servers.NAME.sandbox. null and false mean that the server is not contained.
func (d *decoder) containment(to **Containment) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if n.Kind == yaml.ScalarNode && (n.Value == "false" || n.Tag == "!!null") {
			*to = nil
			return nil
		}
		made := &Containment{}
		*to = made
		if n.Kind == yaml.ScalarNode && n.Value == "true" {
			*made = made.withDefaults()
			return nil
		}
		err := d.object(n, path, []field{
			{key: "packages", read: func(n *yaml.Node, path string) error {
				err := d.texts(&made.Packages)(n, path)
				slices.Sort(made.Packages)
				return err
			}},
			{key: "network", read: d.network(&made.Network)},
			{key: "mounts", read: d.mounts(&made.Mounts)},
			{key: "memory", val: size{&made.Memory, 64 << 20, 1 << 40}},
			{key: "cpus", val: cores{&made.CPUs, 0.1, 256}},
			{key: "pids", val: count[int]{&made.PIDs, 16, 32768}},
			{key: "disk", val: size{&made.Disk, 1 << 20, 1 << 40}},
		})
		*made = made.withDefaults()
		if err == nil && made.Disk > made.Memory {
			err = d.fail(n, "what the server writes is held in its memory", "%s.disk is larger than %s.memory", path,
				path)
		}
		return err
	}
}

// mounts reads a list of paths, or of objects with path, at and writable.
func (d *decoder) mounts(to *[]ServerMount) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		*to = nil
		err := d.items(n, path, func(n *yaml.Node, path string) error {
			var m ServerMount
			read := d.path(&m.Path)(n, path)
			if n.Kind == yaml.MappingNode {
				read = d.object(n, path, []field{
					{key: "path", read: d.path(&m.Path)},
					{key: "at", val: free{&m.At}},
					{key: "writable", val: flag{&m.Writable}},
				})
			}
			if read != nil {
				return read
			}
			m.Path = filepath.Clean(m.Path)
			m.At = cmp.Or(m.At, m.Path)
			if m.Path == "." || m.Path == "/" {
				return d.fail(n, "name the directory that the server needs", "%s mounts no directory", path)
			}
			if !images.Mountable(m.At) {
				return d.fail(n, `write {path: `+m.Path+`, at: /mnt/NAME}`,
					"%s: a mount cannot be at %q in a sandbox, only below %s", path, m.At,
					strings.Join(images.MountDirs(), ", "))
			}
			*to = append(*to, m)
			return nil
		})
		if err == nil && len(*to) > maxMounts {
			err = d.fail(n, "mount a directory that has them", "%s has %d mounts, more than %d", path, len(*to),
				maxMounts)
		}
		slices.SortFunc(*to, func(a, b ServerMount) int { return strings.Compare(a.At, b.At) })
		return err
	}
}

// contained checks the sandboxes of all servers together.
func (d *decoder) contained(c *Config, settings map[string]*decided) error {
	for i, server := range c.Servers {
		box := server.Settings.Sandbox
		if box == nil {
			continue
		}
		at := settings[server.ID].key
		if server.Transport != TransportStdio {
			return d.fail(at, "remove servers."+server.ID+".sandbox",
				"servers.%s.sandbox is for servers with a command, not a URL",
				server.ID)
		}
		program, err := server.Program()
		if err != nil {
			return d.fail(at, "see docs/contained-servers.md for what can be contained", "servers.%s.sandbox: %v",
				server.ID, err)
		}
		for _, requirement := range program.Packages {
			if err := images.CheckRequirement(program.Language, requirement); err != nil {
				return d.fail(at, "write names of packages; addresses, paths and options are not taken",
					"servers.%s.sandbox: %v", server.ID, err)
			}
		}
		for j, m := range box.Mounts {
			for k := range j {
				if box.Mounts[k].At == m.At {
					return d.fail(at, "remove one of them", "servers.%s.sandbox has two mounts at %q", server.ID, m.At)
				}
			}
			if other := replaceable(c.Servers, i, j, m); other != "" {
				return d.fail(at, "mount directories of which none is in another one that a server can change",
					"servers.%s.sandbox mounts %q, which the server %q could replace by a link to another directory",
					server.ID, m.Path, other)
			}
		}
	}
	return nil
}

// replaceable returns the server that can change a directory in which a mount is, or "".
func replaceable(servers []Server, server, at int, m ServerMount) string {
	for i, other := range servers {
		if other.Settings.Sandbox == nil {
			continue
		}
		for j, outer := range other.Settings.Sandbox.Mounts {
			if outer.Writable && (i != server || j != at) && strings.HasPrefix(m.Path, outer.Path+"/") {
				return other.ID
			}
		}
	}
	return ""
}

// Program is how a server is started in a sandbox.
type Program struct {
	Language string   // "node" or "python"
	Packages []string // of its image, sorted
	// Package and Name identify the program of a package. Package is "" if Args begins with a script.
	Package, Name string
	Args          []string // for the program, or the script and its arguments
	// Project is the directory with the script, which the server sees read-only; "" for a package.
	Project string
}

// ProgramError reports a command that cannot be contained.
type ProgramError struct{ Problem string }

// Error returns the problem.
func (e *ProgramError) Error() string { return e.Problem }

// Program returns how the server's command is started in a sandbox. The error is a *ProgramError.
func (s Server) Program() (Program, error) {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(s.Command), ".exe"), ".cmd")
	args := s.Args
	var p Program
	var err error
	switch {
	case name == "npx" || name == "bunx":
		p, err = fromNpx(args)
	case name == "npm" && len(args) > 0 && (args[0] == "exec" || args[0] == "x"):
		p, err = fromNpx(args[1:])
	case name == "uvx":
		p, err = fromUvx(args)
	case name == "uv" && len(args) > 1 && args[0] == "tool" && args[1] == "run":
		p, err = fromUvx(args[2:])
	case name == "pipx" && len(args) > 0 && args[0] == "run":
		p, err = fromUvx(args[1:])
	case name == "node":
		p, err = s.fromScript("node", args)
	case strings.HasPrefix(name, "python") && strings.Trim(name[len("python"):], "0123456789.") == "":
		p, err = s.fromScript("python", args)
	default:
		known := []string{"npx", "uvx", "node", "python"}
		problem := "the command " + name + " cannot be contained, only " + strings.Join(known, ", ")
		if best := nearest.Word(name, known); best != "" {
			problem += ": did you mean " + best + "?"
		}
		return Program{}, &ProgramError{problem}
	}
	if s.Settings.Sandbox != nil {
		p.Packages = append(p.Packages, s.Settings.Sandbox.Packages...)
	}
	slices.Sort(p.Packages)
	p.Packages = slices.Compact(p.Packages)
	return p, err
}

// options reads the options before the first word of a command. Those in takes have a value, which is passed to set.
func options(args []string, flags []string, takes map[string]func(value string)) (rest []string, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option, value, joined := strings.Cut(args[0], "=")
		set, known := takes[option]
		switch {
		case args[0] == "--":
			return args[1:], nil
		case known && joined:
			set(value)
		case known && len(args) > 1:
			set(args[1])
			args = args[1:]
		case !slices.Contains(flags, option):
			return nil, &ProgramError{"the option " + option + " of its launcher cannot be used in a sandbox"}
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return nil, &ProgramError{"its command names no package or script"}
	}
	return args, nil
}

// fromNpx reads the arguments of npx.
func fromNpx(args []string) (Program, error) {
	p := Program{Language: "node"}
	add := func(name string) { p.Packages = append(p.Packages, withoutLatest(name)) }
	args, err := options(args, []string{"-y", "--yes", "-q", "--quiet", "--prefer-offline", "--bun"},
		map[string]func(string){"-p": add, "--package": add})
	if err != nil {
		return p, err
	}
	p.Args = args[1:]
	if len(p.Packages) == 0 {
		add(args[0])
		p.Package = packageName(p.Packages[0], "@")
		return p, nil
	}
	p.Package, p.Name = packageName(p.Packages[0], "@"), args[0]
	return p, nil
}

// fromUvx reads the arguments of uvx.
func fromUvx(args []string) (Program, error) {
	p := Program{Language: "python"}
	add := func(name string) { p.Packages = append(p.Packages, withoutLatest(name)) }
	from, ignore := "", func(string) {}
	args, err := options(args, []string{"-q", "--quiet", "--isolated", "--native-tls", "--refresh", "--upgrade"},
		map[string]func(string){"--from": func(name string) {
			from = withoutLatest(name)
		}, "--spec": func(name string) { from = withoutLatest(name) },
			"--with": add, "-w": add, "--python": ignore, "-p": ignore})
	if err != nil {
		return p, err
	}
	p.Args, p.Name = args[1:], args[0]
	if from == "" {
		from = withoutLatest(args[0])
		if name, version, found := strings.Cut(from, "@"); found {
			from = name + "==" + version
		}
		p.Name = packageName(from, "=<>!~[ ")
	}
	p.Package = packageName(from, "=<>!~[ ")
	add(from)
	return p, nil
}

// withoutLatest removes the version "latest": the lock file has the newest version of its time.
func withoutLatest(requirement string) string { return strings.TrimSuffix(requirement, "@latest") }

// packageName returns a requirement without its version. A scope of npm begins with an @ that is part of the name.
func packageName(requirement, separators string) string {
	if at := strings.IndexAny(requirement[min(1, len(requirement)):], separators); at >= 0 {
		return requirement[:at+1]
	}
	return requirement
}

// fromScript reads the arguments of an interpreter that runs a script or a module.
func (s Server) fromScript(language string, args []string) (Program, error) {
	p := Program{Language: language}
	if language == "python" && len(args) > 1 && args[0] == "-m" {
		p.Args = args
		return p, nil
	}
	args, err := options(args, []string{"-u", "-B", "-I", "-s", "--no-warnings", "--enable-source-maps"}, nil)
	if err != nil {
		return p, err
	}
	script := args[0]
	if !filepath.IsAbs(script) {
		if s.Cwd == "" {
			return p, &ProgramError{"its script " + script + " has no absolute path, and the server no cwd"}
		}
		script = filepath.Join(s.Cwd, script)
	}
	script = filepath.Clean(script)
	p.Project = projectOf(script)
	p.Args = append([]string{script}, args[1:]...)
	if !images.Mountable(p.Project) {
		return p, &ProgramError{"its directory " + p.Project + " is not below one of " +
			strings.Join(images.MountDirs(), ", ")}
	}
	return p, nil
}
