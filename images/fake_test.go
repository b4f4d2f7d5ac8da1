package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeTools are stand-ins for mmdebstrap and npm, first in PATH.
type fakeTools struct {
	dir string
}

// mmdebstrapScript notes that it was called and prints the archive.
const mmdebstrapScript = `#!/bin/sh
echo call >>"$FAKE_TOOLS/calls"
echo "I: downloading packages with apt..." >&2
cat "$FAKE_TOOLS/debian.tar"
`

// npmScript puts the package's archive where "npm pack" would.
const npmScript = `#!/bin/sh
cp "$FAKE_TOOLS/package.tgz" "$4/package-1.tgz"
echo package-1.tgz
`

func newFakeTools(t *testing.T) fakeTools {
	t.Helper()
	tools := fakeTools{dir: t.TempDir()}
	t.Setenv("FAKE_TOOLS", tools.dir)
	t.Setenv("PATH", tools.dir+":"+os.Getenv("PATH"))
	tools.script(t, "mmdebstrap", mmdebstrapScript)
	tools.script(t, "npm", npmScript)
	tools.write(t, "debian.tar", tarOf(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./usr/bin/"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./bin", Linkname: "usr/bin"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./usr/bin/tool", Mode: 0o4755, Size: 1},
		tar.Header{Typeflag: tar.TypeReg, Name: "./etc/resolv.conf", Mode: 0o644, Size: 1},
		tar.Header{Typeflag: tar.TypeChar, Name: "./dev/null"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./" + packageList, Mode: 0o644, Size: int64(len("tool 1 aa\n"))},
	))
	var npm bytes.Buffer
	compress := gzip.NewWriter(&npm)
	_, err := compress.Write(tarOf(t,
		tar.Header{Typeflag: tar.TypeReg, Name: "package/bin/program", Mode: 0o755, Size: 1},
		tar.Header{Typeflag: tar.TypeReg, Name: "package/README.md", Mode: 0o644, Size: 1},
	))
	if err != nil || compress.Close() != nil {
		t.Fatal("the fake npm package could not be compressed")
	}
	tools.write(t, "package.tgz", npm.Bytes())
	return tools
}

// tarOf makes an archive; a file's content is the fake package list or zeros.
func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, header := range headers {
		content := make([]byte, header.Size)
		if strings.HasSuffix(header.Name, packageList) {
			copy(content, "tool 1 aa\n")
		}
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (f fakeTools) script(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (f fakeTools) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// calls is how often mmdebstrap was called.
func (f fakeTools) calls(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "call")
}

// fakeInputs are the inputs of an image of the fake packages.
func fakeInputs(t *testing.T) inputs {
	t.Helper()
	return inputs{
		def: Definition{
			Name:   "fake",
			Debian: Debian{Suite: "bookworm", Packages: []string{"tool"}},
			NPM: &NPM{Package: map[string]string{hostArch: "package"}, Version: "1",
				Files: map[string]string{"bin/program": "usr/bin/program"}},
			Links: map[string]string{"usr/bin/alias": "tool"},
			Args:  []string{"/usr/bin/tool"},
			Env:   []string{"PATH=/usr/bin"},
		},
		locked: []Package{{Source: FromDebian, Name: "tool", Version: "1", Digest: "sha256:aa"}},
		files:  map[string][]byte{"opt/airlock/client/a.txt": []byte("a")},
	}
}
