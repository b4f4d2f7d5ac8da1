package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// packed packs a small program as airlock, from a new directory and with the given
// modification time, and returns the files by name.
func packed(t *testing.T, mode os.FileMode, changed time.Time) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	programs, out := filepath.Join(dir, "programs", "amd64"), filepath.Join(dir, "out")
	host := filepath.Join(dir, "airlock")
	answers := "#!/bin/sh\ncase $1 in version) echo '{\"version\":\"1.2.3\"}';; *) echo \"$@\";; esac\n"
	if err := os.WriteFile(host, []byte(answers), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"airlock", "runsc"} {
		at := filepath.Join(programs, name)
		if err := os.WriteFile(at, self, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(at, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	var base bytes.Buffer
	noFile := gzip.NewWriter(&base)
	if err := errors.Join(tar.NewWriter(noFile).Close(), noFile.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "base-amd64.tar.gz"), base.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &release{root: "../..", out: out, time: time.Unix(1700000000, 0).UTC(), host: host, bases: dir}
	if r.version, err = r.askVersion(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := r.content(programs)
	if err != nil {
		t.Fatal(err)
	}
	names, err := r.pack(entries, programs, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	container, err := r.container(t.TempDir(), entries, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	image, err := r.images(map[string]v1.Image{"amd64": container})
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, image)
	if err := r.checksums(names); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range append(names, "SHA256SUMS") {
		if files[name], err = os.ReadFile(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestMain builds the program under test once: one with modules, as releases have.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "dist")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		built = filepath.Join(dir, "dist")
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", built, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			panic(string(out))
		}
		return m.Run()
	}())
}

// built is the path of the program that TestMain builds.
var built string

func TestTheSameProgramsArePackedIntoTheSameBytes(t *testing.T) {
	first := packed(t, 0o755, time.Unix(1600000000, 0))
	second := packed(t, 0o700, time.Now())
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if len(first) != 5 || len(second) != 5 {
		t.Errorf("packed %d and %d files, want 5", len(first), len(second))
	}
}

func TestAReleaseHasWhatItsUsersNeed(t *testing.T) {
	files := packed(t, 0o755, time.Now())
	in, err := gzip.NewReader(bytes.NewReader(files["airlock_1.2.3_linux_amd64.tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || !header.ModTime.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%s belongs to %d and is of %s", header.Name, header.Uid, header.ModTime)
		}
		names = append(names, strings.TrimPrefix(header.Name, "airlock-1.2.3/"))
	}
	for _, want := range []string{"airlock", "runsc", "LICENSE", "THIRD-PARTY-LICENSES", "CHANGES", "README.md",
		"man/airlock.1", "completions/airlock.bash", "completions/_airlock", "completions/airlock.fish"} {
		if !slices.Contains(names, want) {
			t.Errorf("the archive lacks %s; it has %q", want, names)
		}
	}
	if _, ok := files["airlock_1.2.3-1_amd64.deb"]; !ok {
		t.Error("there is no Debian package of that version")
	}

	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(files["airlock_1.2.3_linux_amd64.cdx.json"]),
		cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, c := range *bill.Components {
		listed = append(listed, c.Name)
	}
	for _, want := range []string{"airlock", "runsc", "std", "github.com/goreleaser/nfpm/v2",
		"github.com/CycloneDX/cyclonedx-go"} {
		if !slices.Contains(listed, want) {
			t.Errorf("the bill of materials lacks %s", want)
		}
	}
	var raw map[string]any
	if err := json.Unmarshal(files["airlock_1.2.3_linux_amd64.cdx.json"], &raw); err != nil ||
		raw["specVersion"] != "1.6" {
		t.Errorf("specVersion is %v (%v)", raw["specVersion"], err)
	}
}

func TestAProgramOfUnknownOriginIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "airlock"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := readPrograms(dir); err == nil || !strings.Contains(err.Error(), "airlock") {
		t.Errorf("a script passed for a Go program: %v", err)
	}
}

// One program has all its names on a system; runsc has none.
func TestAProgramHasItsNames(t *testing.T) {
	var all []string
	for _, e := range append(links("airlock"), links("runsc")...) {
		all = append(all, e.system+" "+e.link)
	}
	const to = " ../lib/airlock/airlock"
	want := []string{"/usr/bin/airlock" + to, "/usr/bin/mcp-kernel-server" + to, "/usr/bin/qwed-mcp" + to}
	if !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
}
