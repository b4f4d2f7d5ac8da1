// Package images defines, builds and opens the sandbox images.
//
// An image is built in two layers without Docker and without a registry: a base of Debian
// packages and, for Node, the npm package that contains its program; and Airlock's files,
// which are embedded in the airlock program. Equal inputs give an equal digest. A built image
// is stored below $AIRLOCK_HOME as an OCI layout (OCI Image Format Specification, "Image
// Layout") and as the unpacked root file system that sandboxes share read-only.
package images

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sys/cpu"
)

//go:embed all:python all:node all:verify skeleton images.lock
var embedded embed.FS

// UID and GID are the user and group that code runs as, in every image.
const (
	UID = 65532
	GID = 65532
)

// Workspace is the working directory inside of a sandbox.
const Workspace = "/workspace"

// guestRoot is where Airlock's own files are, inside of a sandbox.
const guestRoot = "opt/airlock"

// ErrUnknown is returned for the name of an image that does not exist.
var ErrUnknown = errors.New("no such image")

// Definition describes the contents of an image. It is read from image.yaml in the image's
// directory.
type Definition struct {
	Name     string            `yaml:"-"`        // the directory's name: "python", "node" or "verify"
	Summary  string            `yaml:"summary"`  // one line for people
	Language string            `yaml:"language"` // of the code that it runs; "" if it runs none
	From     string            `yaml:"from"`     // another image, whose base layer this one shares; may be ""
	Debian   Debian            `yaml:"debian"`   // the packages of the base layer
	NPM      *NPM              `yaml:"npm"`      // nil: nothing from npm
	Links    map[string]string `yaml:"links"`    // path of a symbolic link → its target
	Wheels   *Wheels           `yaml:"wheels"`   // nil: no Python packages
	Sources  bool              `yaml:"sources"`  // whether the packages of sdk/python are in it
	Bytecode []string          `yaml:"bytecode"` // directories whose Python files are compiled ahead
	// whether the modules that the guest loads at its start are in one file, too
	Bundle bool     `yaml:"bundle"`
	Args   []string `yaml:"args"` // the guest program and its arguments
	Env    []string `yaml:"env"`  // the whole environment, NAME=value

	// RestoreNeeds is the processor's feature without which a sandbox of the image
	// must not be restored from a saved one; "" for none. See Restorable.
	RestoreNeeds string `yaml:"restoreNeeds"`

	// Fresh starts every sandbox of the image from the beginning. The program draws numbers at its start that would be
	// the same in all sandboxes that are restored from one, and cannot draw them again.
	Fresh bool `yaml:"fresh"`
}

// Restorable reports whether sandboxes of the image may be restored from a saved one on this
// machine. If not, two restored sandboxes would draw the same random numbers, because the
// state of a program's generator is part of the saved state.
func (d Definition) Restorable() bool {
	return d.RestoreNeeds == "" || d.RestoreNeeds == rdrand && cpu.X86.HasRDRAND
}

// rdrand is the x86 instruction that draws random numbers. Programs that use it have no
// generator state to share.
const rdrand = "rdrand"

// Debian is the part of an image that comes from Debian packages.
type Debian struct {
	Suite    string   `yaml:"suite"`    // such as "bookworm"
	Packages []string `yaml:"packages"` // their dependencies are added
	// paths to leave out (patterns of path.Match), beside those left out of every image
	Drop []string `yaml:"drop"`
}

// NPM is the part of an image that comes from one npm package.
type NPM struct {
	Package map[string]string `yaml:"package"` // Go's name of an architecture → the package's name
	Version string            `yaml:"version"` // exactly this one
	Files   map[string]string `yaml:"files"`   // path in the package → path in the image
}

// Wheels is the part of an image that comes from Python packages.
type Wheels struct {
	Requirements string   `yaml:"requirements"` // the file of sdk/python with what is wanted, hashed
	Drop         []string `yaml:"drop"`         // paths to leave out (patterns of path.Match)

	// Other replaces requirements on an architecture: architecture → name → version
	// and hash in pip's format, or "" to omit the package.
	Other map[string]map[string]string `yaml:"other"`
}

// names are the directories of this package that hold an image, in the order of List.
var names = [...]string{"node", "python", "verify"}

// Verifier is the name of the image with the engines of package verify.
const Verifier = "verify"

// List returns the definitions of all images, ordered by name.
func List() []Definition {
	list := make([]Definition, 0, len(names))
	for _, name := range names {
		def, err := define(name)
		if err != nil {
			panic(err) // the file is embedded, and a test reads it
		}
		list = append(list, def)
	}
	return list
}

// Languages returns the definitions of the images that run code, ordered by name.
func Languages() []Definition {
	return slices.DeleteFunc(List(), func(d Definition) bool { return d.Language == "" })
}

// Find returns the definition of the image with the given name, or ErrUnknown.
func Find(name string) (Definition, error) {
	if slices.Contains(names[:], name) {
		return define(name)
	}
	return Definition{}, fmt.Errorf("image %q: %w: there are %s", name, ErrUnknown, strings.Join(names[:], ", "))
}

func define(name string) (Definition, error) {
	text, err := embedded.ReadFile(path.Join(name, "image.yaml"))
	if err != nil {
		return Definition{}, fmt.Errorf("reading the definition of image %q: %w", name, err)
	}
	def, err := parseDefinition(name, text)
	if err != nil || def.From == "" {
		return def, err
	}
	from, err := define(def.From)
	def.Debian, def.NPM, def.Links = from.Debian, from.NPM, from.Links
	return def, err
}

func parseDefinition(name string, text []byte) (Definition, error) {
	def := Definition{Name: name}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&def); err != nil {
		return Definition{}, fmt.Errorf("reading the definition of image %q: %w", name, err)
	}
	return def, nil
}

// npmPackage is the npm package of this image for an architecture, if there is one.
func (d Definition) npmPackage(arch string) (name string, err error) {
	if d.NPM == nil {
		return "", nil
	}
	if name, ok := d.NPM.Package[arch]; ok {
		return name, nil
	}
	return "", fmt.Errorf("image %q cannot be built for the architecture %q", d.Name, arch)
}

// hostArch is the architecture that images are built for.
const hostArch = runtime.GOARCH
