package images

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxManifestFile is the maximum size of a package's file with its programs, in bytes.
const maxManifestFile = 1 << 20

// Entry returns the command that starts a program of a package in an image. If name is empty, it is the program with
// the name of the package, or its only one. The error is a *PackageError if the package has no such program.
func Entry(rootFS, language, pkg, name string) ([]string, error) {
	root, err := os.OpenRoot(rootFS)
	if err != nil {
		return nil, fmt.Errorf("looking for the program of %q: %w", pkg, err)
	}
	defer root.Close()
	if language == "node" {
		return nodeEntry(root, pkg, name)
	}
	return pythonEntry(root, pkg, name)
}

// pick returns the program of that name, the one with the name of the package, or the only one.
func pick(programs map[string]string, pkg, name string) (string, error) {
	names := slices.Sorted(maps.Keys(programs))
	switch {
	case name != "" && programs[name] != "":
		return programs[name], nil
	case programs[path.Base(pkg)] != "" && (name == "" || name == pkg):
		return programs[path.Base(pkg)], nil
	case len(names) == 1:
		return programs[names[0]], nil
	case len(names) == 0:
		return "", &PackageError{fmt.Sprintf("the package %q has no program", pkg), "name a package that is a server"}
	}
	return "", &PackageError{fmt.Sprintf("the package %q has no program %q", pkg, name),
		"name one of its programs in the command: " + strings.Join(names, ", ")}
}

func readSmall(root *os.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxManifestFile))
}

// nodeEntry reads the member bin of package.json: a path, or an object with several.
func nodeEntry(root *os.Root, pkg, name string) ([]string, error) {
	var manifest struct {
		Bin         json.RawMessage `json:"bin"`
		Directories json.RawMessage `json:"directories"`
	}
	text, err := readSmall(root, path.Join(nodeModules, pkg, "package.json"))
	if err == nil {
		err = strictjson.UnmarshalOpen(text, &manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the program of %q: %w", pkg, err)
	}
	var one string
	programs := map[string]string{}
	if strictjson.UnmarshalOpen(manifest.Bin, &one) == nil && one != "" {
		programs[path.Base(pkg)] = one
	} else if len(manifest.Bin) > 0 {
		if err := strictjson.UnmarshalOpen(manifest.Bin, &programs); err != nil {
			return nil, fmt.Errorf("looking for the program of %q: %w", pkg, err)
		}
	}
	script, err := pick(programs, pkg, name)
	if err != nil {
		return nil, err
	}
	return []string{"/usr/bin/node", path.Join("/", nodeModules, pkg, path.Join("/", script))}, nil
}

// entryPoint matches a line of entry_points.txt: "name = module:attribute".
var entryPoint = lazyregexp.New(`^\s*([^=\s\[][^=]*?)\s*=\s*([A-Za-z_][\w.]*)\s*:\s*([A-Za-z_][\w.]*)\s*(\[.*\])?$`)

// pythonEntry reads the section console_scripts of entry_points.txt ("Entry points specification" of the Python
// Packaging User Guide).
func pythonEntry(root *os.Root, pkg, name string) ([]string, error) {
	pkg, _, _ = strings.Cut(pkg, "[")
	wanted := normalName(pkg)
	entries, err := fs.ReadDir(root.FS(), sitePackages)
	if err != nil {
		return nil, fmt.Errorf("looking for the program of %q: %w", pkg, err)
	}
	programs := map[string]string{}
	for _, entry := range entries {
		base, isInfo := strings.CutSuffix(entry.Name(), ".dist-info")
		distribution, _ := cutLast(base, "-")
		if !isInfo || normalName(distribution) != wanted {
			continue
		}
		text, err := readSmall(root, path.Join(sitePackages, entry.Name(), "entry_points.txt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for the program of %q: %w", pkg, err)
		}
		section := ""
		lines := bufio.NewScanner(strings.NewReader(string(text)))
		for lines.Scan() {
			line := strings.TrimSpace(lines.Text())
			if strings.HasPrefix(line, "[") {
				section = line
			} else if found := entryPoint.FindStringSubmatch(line); found != nil && section == "[console_scripts]" {
				programs[found[1]] = found[2] + ":" + found[3]
			}
		}
	}
	entry, err := pick(programs, pkg, name)
	if err != nil {
		return nil, err
	}
	module, attribute, _ := strings.Cut(entry, ":")
	start := fmt.Sprintf("import sys, importlib, operator; sys.argv[0] = %q; "+
		"sys.exit(operator.attrgetter(%q)(importlib.import_module(%q))())",
		name, attribute, module)
	return append(PythonArgs(), "-c", start), nil
}

// PythonArgs returns the interpreter of servers with its options: no variables and no user's packages count, and no
// bytecode is written.
func PythonArgs() []string { return []string{"/usr/bin/python3", "-I", "-B", "-X", "utf8"} }
