package images

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/airlock-mcp/airlock/sdk/python"
)

func TestDefinitionsAreWhole(t *testing.T) {
	lock, err := lockOf(t)
	if err != nil {
		t.Fatal(err)
	}
	list := List()
	if len(list) != len(names) {
		t.Fatalf("got %d definitions, want %d", len(list), len(names))
	}
	for _, def := range list {
		if def.Summary == "" || len(def.Args) == 0 || len(def.Env) == 0 || def.Debian.Suite == "" {
			t.Errorf("image %q: something is missing in %+v", def.Name, def)
		}
		for _, pair := range def.Env {
			if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
				t.Errorf("image %q: environment entry %q is not NAME=value", def.Name, pair)
			}
		}
		for _, arch := range archs {
			checkLocked(t, def, arch, lock[lockKey{image: def.Name, arch: arch}])
		}
		from, err := readInputs(def.Name)
		if err != nil {
			t.Fatal(err)
		}
		if program := strings.TrimPrefix(def.Args[len(def.Args)-1], "/"); from.files[program] == nil {
			t.Errorf("image %q: its guest program %q is not among its files", def.Name, program)
		}
	}
}

func TestRestorable(t *testing.T) {
	for needs, want := range map[string]bool{"": true, "rdrand": cpu.X86.HasRDRAND, "rdrnd": false} {
		if got := (Definition{RestoreNeeds: needs}).Restorable(); got != want {
			t.Errorf("an image that needs %q: got %v, want %v", needs, got, want)
		}
	}
	for _, def := range List() {
		if def.RestoreNeeds != "" && def.RestoreNeeds != rdrand {
			t.Errorf("image %q: unknown feature %q", def.Name, def.RestoreNeeds)
		}
	}
}

func lockOf(t *testing.T) (lockFile, error) {
	t.Helper()
	text, err := embedded.ReadFile("images.lock")
	if err != nil {
		return nil, err
	}
	return parseLock(text)
}

// checkLocked checks that images.lock pins what the definition asks for.
func checkLocked(t *testing.T, def Definition, arch string, locked []Package) {
	t.Helper()
	if def.Wheels != nil {
		checkLockedWheels(t, def, arch, locked)
		return // the rest is of the image that it is made from
	}
	wanted := make([]Package, 0, len(def.Debian.Packages)+1)
	for _, name := range def.Debian.Packages {
		wanted = append(wanted, Package{Source: FromDebian, Name: name})
	}
	name, err := def.npmPackage(arch)
	if err != nil {
		t.Fatal(err)
	}
	if name != "" {
		wanted = append(wanted, Package{Source: FromNPM, Name: name})
	}
	for _, pkg := range wanted {
		i := slices.IndexFunc(locked, pkg.sameName)
		if i < 0 {
			t.Errorf("image %q, %s: images.lock does not pin %q", def.Name, arch, pkg.Name)
		} else if pkg.Source == FromNPM && locked[i].Version != def.NPM.Version {
			t.Errorf("image %q, %s: images.lock pins %s %s, image.yaml says %s", def.Name, arch, pkg.Name,
				locked[i].Version, def.NPM.Version)
		}
	}
}

// checkLockedWheels checks that images.lock has every requirement in its version, and
// nothing else.
func checkLockedWheels(t *testing.T, def Definition, arch string, locked []Package) {
	t.Helper()
	requirements, err := python.Source.ReadFile(def.Wheels.Requirements)
	if err != nil {
		t.Fatal(err)
	}
	wanted := 0
	for line := range strings.Lines(string(replaced(requirements, def.Wheels.Other[arch]))) {
		name, version, ok := strings.Cut(line, "==")
		if !ok || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "#") {
			continue
		}
		wanted++
		version = strings.Fields(version)[0]
		pkg := Package{Source: FromPyPI, Name: normalName(name)}
		if i := slices.IndexFunc(locked, pkg.sameName); i < 0 || locked[i].Version != version {
			t.Errorf("image %q, %s: images.lock does not pin %s %s: run `airlock images build --update-lock "+
				"images/images.lock`", def.Name, arch, name, version)
		}
	}
	if wanted == 0 || wanted != len(locked) {
		t.Errorf("image %q, %s: images.lock has %d Python packages, the requirements %d", def.Name, arch, len(locked),
			wanted)
	}
}

func TestDefinitionRefusesUnknownKeys(t *testing.T) {
	_, err := parseDefinition("x", []byte("summary: x\nsumary: y\n"))
	if err == nil || !strings.Contains(err.Error(), "sumary") {
		t.Errorf("got %v, want an error that names the key", err)
	}
}

func TestUnknownImage(t *testing.T) {
	if _, err := Open(t.TempDir(), "ruby"); !errors.Is(err, ErrUnknown) {
		t.Errorf("Open: got %v, want %v", err, ErrUnknown)
	}
	if _, err := Build(t.Context(), BuildOptions{Home: t.TempDir(), Name: "ruby"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("Build: got %v, want %v", err, ErrUnknown)
	}
}

func TestArchitectureWithoutPackage(t *testing.T) {
	def := Definition{Name: "x", NPM: &NPM{Package: map[string]string{"amd64": "p"}}}
	if _, err := def.npmPackage("riscv64"); err == nil {
		t.Error("got no error")
	}
}
