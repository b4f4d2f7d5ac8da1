package images

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// recipe is raised when the code of this package changes what an image becomes.
const recipe = 1

// mountPoints are the directories over which the sandbox mounts something.
var mountPoints = [...]string{
	"dev", "proc", "run/airlock", "sys", "tmp", "var/tmp", "workspace", "usr/lib/ssl",
	"workspace/client", "workspace/servers",
}

// ownLinks are the symbolic links of Airlock's layer. The name server of a run with a network is in the directory that
// such a run mounts; in other runs the link leads nowhere.
var ownLinks = map[string]string{"etc/resolv.conf": "/usr/lib/ssl/resolv.conf"}

// ownFiles returns the files of Airlock's layer: path in the image → content. An
// image that is made from another one has the guest and the client of that, too.
func ownFiles(def Definition) (map[string][]byte, error) {
	files, name := map[string][]byte{}, cmp.Or(def.From, def.Name)
	roots := map[string]string{
		"skeleton":                "",
		path.Join(name, "guest"):  path.Join(guestRoot, "guest"),
		path.Join(name, "client"): path.Join(guestRoot, "client"),
	}
	if def.From != "" {
		roots[path.Join(def.Name, "engines")] = path.Join(guestRoot, "engines")
	}
	for from, to := range roots {
		walk := func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || isLeftover(file) {
				return err
			}
			content, err := embedded.ReadFile(file)
			files[path.Join(to, strings.TrimPrefix(file, from+"/"))] = content
			return err
		}
		if err := fs.WalkDir(embedded, from, walk); err != nil {
			return nil, fmt.Errorf("reading the files of image %q: %w", def.Name, err)
		}
	}
	return files, nil
}

// isLeftover reports whether a file is in the embedded directories only because tests ran
// there before the program was built.
func isLeftover(file string) bool {
	return strings.Contains(file, "__pycache__/") || strings.HasSuffix(file, ".pyc")
}

// writeOwnFiles makes the tree of Airlock's layer below dir.
func writeOwnFiles(dir string, files map[string][]byte) error {
	for _, directory := range mountPoints {
		if err := os.MkdirAll(filepath.Join(dir, directory), 0o755); err != nil {
			return fmt.Errorf("writing Airlock's files: %w", err)
		}
	}
	for name, to := range ownLinks {
		link := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return fmt.Errorf("writing Airlock's files: %w", err)
		}
		if err := os.Symlink(to, link); err != nil {
			return fmt.Errorf("writing Airlock's files: %w", err)
		}
	}
	for name, content := range files {
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("writing Airlock's files: %w", err)
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return fmt.Errorf("writing Airlock's files: %w", err)
		}
	}
	return nil
}

// inputs are everything that an image is made from.
type inputs struct {
	def     Definition
	dir     string            // the name of the image's directory; "" means the definition's
	locked  []Package         // the packages of its base layer in images.lock
	wheels  []Package         // the Python packages, locked
	wanted  []string          // the packages that a user asks for
	modules []byte            // the npm packages, locked
	files   map[string][]byte // Airlock's own files: path in the image → content
}

// directory is the name of the image's directory in the state directory.
func (in inputs) directory() string { return cmp.Or(in.dir, in.def.Name) }

// baseName is the image whose base layer this one has.
func (in inputs) baseName() string { return cmp.Or(in.def.From, in.def.Name) }

// hasPackages reports whether the image has a layer of packages.
func (in inputs) hasPackages() bool { return len(in.wheels) > 0 || len(in.modules) > 0 }

// ownDirectories are the directories of Airlock's layer that have Python files.
func (in inputs) ownDirectories() []string {
	if in.def.Sources {
		return []string{guestRoot, sitePackages}
	}
	return []string{guestRoot}
}

// readInputs returns the inputs that this program has embedded, or ErrUnknown.
func readInputs(name string) (inputs, error) {
	def, err := Find(name)
	if err != nil {
		return inputs{}, err
	}
	in := inputs{def: def}
	if in.locked, err = lockedPackages(in.baseName()); err != nil {
		return inputs{}, err
	}
	if def.Wheels != nil {
		if in.wheels, err = lockedPackages(name); err != nil {
			return inputs{}, err
		}
		if len(in.wheels) == 0 {
			return inputs{}, fmt.Errorf("images.lock names no packages of image %q for the architecture %s", name,
				hostArch)
		}
	}
	in.files, err = ownFiles(def)
	if err != nil || !def.Sources {
		return in, err
	}
	sources, err := sdkFiles()
	maps.Copy(in.files, sources)
	return in, err
}

// baseKey names the base layer that is made from the inputs.
func (in inputs) baseKey() string {
	return hashJSON(struct {
		Recipe   int
		Debian   Debian
		NPM      *NPM
		Links    map[string]string
		Bytecode []string
		Arch     string
		Locked   []Package
	}{recipe, in.def.Debian, in.def.NPM, in.def.Links, in.def.Bytecode, hostArch, in.locked})
}

// packagesKey names the layer of packages that is made from the inputs.
func (in inputs) packagesKey() string {
	return hashJSON(struct {
		Recipe  int
		Base    string
		Def     *Wheels
		Wheels  []Package
		Modules string `json:",omitempty"`
	}{recipe, in.baseKey(), in.def.Wheels, in.wheels, string(in.modules)})
}

// key names the image that is made from the inputs. An image that was made from
// others is stale.
func (in inputs) key() string {
	sums := make([]string, 0, len(in.files))
	for _, name := range slices.Sorted(maps.Keys(in.files)) {
		sum := sha256.Sum256(in.files[name])
		sums = append(sums, name+" "+hex.EncodeToString(sum[:]))
	}
	packages := ""
	if in.hasPackages() {
		packages = in.packagesKey()
	}
	bundle := ""
	if in.def.Bundle {
		bundle = bundler
	}
	return hashJSON(struct {
		Base     string
		Args     []string
		Env      []string
		Files    []string
		Packages string `json:",omitempty"`
		Bundle   string `json:",omitempty"`
		Mounts   []string
		Links    map[string]string
	}{in.baseKey(), in.def.Args, in.def.Env, sums, packages, bundle, mountPoints[:], ownLinks})
}

func hashJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and maps of them always have a JSON form
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
