package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// released returns the one file of bin/dist that a pattern matches.
func released(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.RepoRoot(t), "bin", "dist", pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("bin/dist has %q (%v) for %s, want one file: run `make dist`", files, err, pattern)
	}
	return files[0]
}

// filesOf reads a tar file: the content of regular files and, behind "-> ", where
// symbolic links lead, by their names.
func filesOf(t *testing.T, in io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Mode&0o6022 != 0 && header.Typeflag != tar.TypeSymlink {
			t.Errorf("%s belongs to %d:%d and has the mode %o", header.Name, header.Uid, header.Gid, header.Mode)
		}
		name := path.Clean("/" + header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
		case tar.TypeSymlink:
			files[name] = []byte("-> " + header.Linkname)
		default:
			if files[name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// programsIn returns the digests of those files that are programs, by their base names,
// and looks whether each is for the architecture and needs nothing of the system.
func programsIn(t *testing.T, files map[string][]byte, architecture string) map[string]string {
	t.Helper()
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[architecture]
	baseline := map[string]string{"amd64": "GOAMD64=v1", "arm64": "GOARM64=v8.0"}[architecture]
	digests := map[string]string{}
	for name, content := range files {
		if !bytes.HasPrefix(content, []byte(elf.ELFMAG)) {
			continue
		}
		program, err := elf.NewFile(bytes.NewReader(content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if program.Machine != machine || program.Class != elf.ELFCLASS64 {
			t.Errorf("%s is for %s, %s, want %s", name, program.Machine, program.Class, machine)
		}
		if slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			t.Errorf("%s needs libraries of the system", name)
		}
		info, err := buildinfo.Read(bytes.NewReader(content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var settings []string
		for _, s := range info.Settings {
			settings = append(settings, s.Key+"="+s.Value)
		}
		for _, want := range []string{"GOOS=linux", "GOARCH=" + architecture, baseline, "CGO_ENABLED=0",
			"-trimpath=true"} {
			if !slices.Contains(settings, want) {
				t.Errorf("%s is built with %q, want %s", name, settings, want)
			}
		}
		sum := sha256.Sum256(content)
		digests[path.Base(name)] = hex.EncodeToString(sum[:])
	}
	return digests
}

// billed returns the digests that the bill of materials has for programs.
func billed(t *testing.T, architecture string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(released(t, "airlock_*_linux_"+architecture+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Components []struct {
			Name   string
			Hashes []struct{ Content string }
		}
	}
	if err := json.Unmarshal(raw, &bill); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, c := range bill.Components {
		if len(c.Hashes) > 0 {
			digests[c.Name] = c.Hashes[0].Content
		}
	}
	return digests
}

// Package, archive and bill of materials of each architecture have the same two programs,
// which are for that architecture, also for the one that cannot be run here.
func TestProgramsAreForTheirArchitecture(t *testing.T) {
	testenv.Sandbox(t) // make dist has to come before
	paths := map[string][]string{}
	for _, architecture := range []string{"amd64", "arm64"} {
		t.Run(architecture, func(t *testing.T) {
			file := released(t, "airlock_*_"+architecture+".deb")
			fields, err := exec.Command("dpkg-deb", "--field", file, "Architecture", "Depends").Output()
			if want := "Architecture: " + architecture + "\nDepends: "; err != nil ||
				!strings.HasPrefix(string(fields), want) {
				t.Errorf("%s says %q, %v, want %q", filepath.Base(file), fields, err, want)
			}
			if contains := strings.Contains(filepath.Base(file), "_"+architecture+"."); !contains {
				t.Errorf("the package is named %s", file)
			}
			unpacked, err := exec.Command("dpkg-deb", "--fsys-tarfile", file).Output()
			if err != nil {
				t.Fatal(err)
			}
			files := filesOf(t, bytes.NewReader(unpacked))
			paths[architecture] = slices.Sorted(maps.Keys(files))
			for _, name := range []string{"airlock", "qwed-mcp", "mcp-kernel-server"} {
				if got := string(files["/usr/bin/"+name]); got != "-> ../lib/airlock/airlock" {
					t.Errorf("/usr/bin/%s is %.80q", name, got)
				}
			}
			inPackage := programsIn(t, files, architecture)
			if names := slices.Sorted(maps.Keys(inPackage)); !slices.Equal(names, []string{"airlock", "runsc"}) {
				t.Errorf("the package has the programs %q", names)
			}
			packed, err := os.Open(released(t, "airlock_*_linux_"+architecture+".tar.gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer packed.Close()
			archive, err := gzip.NewReader(packed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inPackage, programsIn(t, filesOf(t, archive), architecture)); diff != "" {
				t.Errorf("package and archive have other programs: %s", diff)
			}
			if diff := cmp.Diff(inPackage, billed(t, architecture)); diff != "" {
				t.Errorf("package and bill of materials have other programs: %s", diff)
			}
		})
	}
	if diff := cmp.Diff(paths["amd64"], paths["arm64"]); diff != "" {
		t.Errorf("the packages have other files: %s", diff)
	}
}
