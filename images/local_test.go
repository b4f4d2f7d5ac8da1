package images_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// registry is an index of PyPI (PEP 503, "Simple Repository API") and a registry of npm
// on loopback, with packages that tests make.
type registry struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte // by path
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{files: map[string][]byte{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		content, ok := r.files[req.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, req)
			return
		}
		if strings.HasPrefix(req.URL.Path, "/simple/") {
			w.Header().Set("Content-Type", "text/html")
		}
		w.Write(content)
	}))
	t.Cleanup(r.Close)
	// The machine's pip configuration must not affect the test.
	for _, name := range []string{"PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX",
		"PIP_CONSTRAINT"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	t.Setenv("PIP_CONFIG_FILE", os.DevNull)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "")
	}
	t.Setenv("no_proxy", "127.0.0.1")
	return r
}

func (r *registry) put(path string, content []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[path] = content
}

// python offers the files of a Python package, by their names.
func (r *registry) python(name string, files map[string][]byte) {
	var page strings.Builder
	page.WriteString("<!DOCTYPE html><html><body>")
	for file, content := range files {
		sum := sha256.Sum256(content)
		fmt.Fprintf(&page, `<a href="/files/%s#sha256=%s">%s</a>`, file, hex.EncodeToString(sum[:]), file)
		r.put("/files/"+file, content)
	}
	r.put("/simple/"+name+"/", []byte(page.String()))
}

// npm offers one version of an npm package.
func (r *registry) npm(t *testing.T, name, manifest string, files map[string]string) {
	t.Helper()
	archive := tgz(t, manifest, files)
	sum := sha512.Sum512(archive)
	var version map[string]any
	if err := json.Unmarshal([]byte(manifest), &version); err != nil {
		t.Fatal(err)
	}
	version["dist"] = map[string]string{
		"tarball":   r.URL + "/" + name + "/-/" + name + "-1.0.0.tgz",
		"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	if strings.Contains(manifest, "install") {
		version["hasInstallScript"] = true
	}
	text, err := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.0.0"},
		"versions": map[string]any{"1.0.0": version}})
	if err != nil {
		t.Fatal(err)
	}
	r.put("/"+name, text)
	r.put("/"+name+"/-/"+name+"-1.0.0.tgz", archive)
}

func tgz(t *testing.T, manifest string, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	compress := gzip.NewWriter(&out)
	archive := tar.NewWriter(compress)
	all := map[string]string{"package/package.json": manifest}
	for name, content := range files {
		all["package/"+name] = content
	}
	for name, content := range all {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644,
			Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compress.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wheel makes one of the named package, which needs others, with files beside its metadata.
func wheel(t *testing.T, name string, needs []string, files map[string]string) []byte {
	t.Helper()
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n"
	for _, other := range needs {
		metadata += "Requires-Dist: " + other + "\n"
	}
	all := map[string]string{
		name + "-1.0.dist-info/METADATA": metadata,
		name + "-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n" +
			"Tag: py3-none-any\n",
		name + "-1.0.dist-info/RECORD": "",
	}
	for path, content := range files {
		all[path] = content
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for path, content := range all {
		w, err := archive.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// builder builds images in a separate state directory, from the existing base layer of a
// language.
func builder(t *testing.T, language string) (home string) {
	t.Helper()
	env := testenv.Sandbox(t)
	home = t.TempDir()
	copyBases(t, env.Home, home, language)
	return home
}

func TestPythonPackagesOfAnIndex(t *testing.T) {
	home, index := builder(t, "python"), newRegistry(t)
	index.python("greeting",
		map[string][]byte{"greeting-1.0-py3-none-any.whl": wheel(
			t, "greeting", []string{`words; python_version == "3.11"`, `other; python_version >= "3.12"`,
				`more; platform_machine == "riscv64"`}, map[string]string{
				"greeting/__init__.py":            "from words import word\nhello = 'hello ' + word\n",
				"greeting-1.0.data/scripts/greet": "#!python\n", "greeting/broken.py": "def (",
			})})
	index.python("words",
		map[string][]byte{"words-1.0-py3-none-any.whl": wheel(
			t, "words", nil, map[string]string{"words.py": "word = 'world'\n"})})

	opts := images.ResolveOptions{Progress: t.Output(), Index: index.URL + "/simple/"}
	lock, err := images.PackageLock{}.Resolve(t.Context(), "python", []string{"greeting"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	extra, err := lock.Extra("python", []string{"greeting"})
	if err != nil || len(extra.Wheels) != 2 {
		t.Fatalf("got %+v, %v, want the package and what it needs on Python 3.11", extra, err)
	}
	build := images.BuildOptions{Home: home, Name: "python", Progress: t.Output(), Index: index.URL + "/simple/",
		Extra: extra}
	built, err := images.Build(t.Context(), build)
	if err != nil {
		t.Fatal(err)
	}
	image, err := images.OpenWith(home, "python", extra)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := images.Verify(t.Context(), image); err != nil {
		t.Error(err)
	}
	const packages = "usr/lib/python3/dist-packages/"
	for name, want := range map[string]bool{
		packages + "greeting/__init__.py": true, packages + "words.py": true,
		packages + "greeting/__pycache__/__init__.cpython-311.pyc": true,
		packages + "greeting/broken.py":                            true, packages + "greeting-1.0.data": false,
		"usr/bin/greet": false, "opt/airlock/packages.txt": true,
	} {
		if _, err := os.Stat(filepath.Join(image.RootFS, name)); (err == nil) != want {
			t.Errorf("%s: got %v, want there %v", name, err, want)
		}
	}

	t.Run("the same lock gives the same image", func(t *testing.T) {
		again := build
		again.Home, again.Fresh = builder(t, "python"), false
		if got, err := images.Build(t.Context(), again); err != nil || got.Digest != built.Digest {
			t.Errorf("got %s, %v, want %s", got.Digest, err, built.Digest)
		}
	})
	t.Run("a file with another digest is refused", func(t *testing.T) {
		index.put("/files/words-1.0-py3-none-any.whl",
			wheel(t, "words", nil, map[string]string{"words.py": "import os\n"}))
		again := build
		again.Home = builder(t, "python")
		if _, err := images.Build(t.Context(), again); err == nil || !strings.Contains(err.Error(), "digest") {
			t.Errorf("got %v, want a refusal that names the digest", err)
		}
	})
	t.Run("the image without packages is another one", func(t *testing.T) {
		if _, err := images.Open(home, "python"); !errors.Is(err, images.ErrNotBuilt) {
			t.Errorf("got %v, want %v", err, images.ErrNotBuilt)
		}
	})
}

func TestPythonPackagesThatAreRefused(t *testing.T) {
	testenv.Sandbox(t)
	index := newRegistry(t)
	index.python("sources",
		map[string][]byte{"sources-1.0.tar.gz": tgz(t, "{}", map[string]string{"setup.py": "open('/tmp/ran', 'w')"})})
	index.python("foreign",
		map[string][]byte{"foreign-1.0-cp312-cp312-manylinux_2_17_x86_64.whl": wheel(t, "foreign", nil, nil),
			"foreign-1.0-cp311-cp311-win_amd64.whl": wheel(t, "foreign", nil, nil)})
	index.python("newer",
		map[string][]byte{"newer-1.0-cp311-cp311-manylinux_2_39_x86_64.whl": wheel(t, "newer", nil, nil),
			"newer-1.0-cp311-cp311-manylinux_2_39_aarch64.whl": wheel(t, "newer", nil, nil)})
	index.python("needy", map[string][]byte{"needy-1.0-py3-none-any.whl": wheel(t, "needy", []string{"sources"}, nil)})
	index.python("linked",
		map[string][]byte{"linked-1.0-py3-none-any.whl": wheel(
			t, "linked", []string{"direct @ " + index.URL + "/files/direct-1.0-py3-none-any.whl"}, nil)})
	index.put("/files/direct-1.0-py3-none-any.whl", wheel(t, "direct", nil, nil))
	for _, name := range []string{"sources", "foreign", "newer", "needy", "linked", "absent", "--pre"} {
		t.Run(name, func(t *testing.T) {
			_, err := images.PackageLock{}.Resolve(
				t.Context(), "python", []string{name}, images.ResolveOptions{Index: index.URL + "/simple/"})
			var refused *images.PackageError
			if !errors.As(err, &refused) || refused.Hint() == "" || strings.Contains(refused.Error(), "\n") {
				t.Errorf("got %v, want a refusal in one sentence, with a hint", err)
			}
		})
	}
}

func TestWheelsThatUnpackOutside(t *testing.T) {
	for name, path := range map[string]string{
		"a name that climbs": "../../../../usr/bin/python3", "an absolute name": "/usr/bin/python3",
		"a data directory that climbs": "evil-1.0.data/purelib/../../../../../etc/passwd",
	} {
		t.Run(name, func(t *testing.T) {
			home, index := builder(t, "python"), newRegistry(t)
			index.python("evil",
				map[string][]byte{"evil-1.0-py3-none-any.whl": wheel(t, "evil", nil, map[string]string{path: "evil"})})
			lock, err := images.PackageLock{}.Resolve(
				t.Context(), "python", []string{"evil"}, images.ResolveOptions{Index: index.URL + "/simple/"})
			if err != nil {
				return // pip has refused it
			}
			extra, err := lock.Extra("python", []string{"evil"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := images.Build(t.Context(),
				images.BuildOptions{Home: home, Name: "python", Index: index.URL + "/simple/",
					Extra: extra}); err == nil {
				t.Error("the image was built")
			}
		})
	}
}

func TestNodePackagesOfARegistry(t *testing.T) {
	home, npm := builder(t, "node"), newRegistry(t)
	marker := filepath.Join(t.TempDir(), "ran")
	npm.npm(t, "greeting",
		`{"name":"greeting","version":"1.0.0","main":"index.js","dependencies":{"words":"^1.0.0"},`+
			`"bin":{"greet":"index.js"},"scripts":{"install":"touch `+marker+`"}}`,
		map[string]string{"index.js": "module.exports = 'hello ' + require('words');\n"})
	npm.npm(t, "words", `{"name":"words","version":"1.0.0","main":"index.js"}`,
		map[string]string{"index.js": "module.exports = 'world';\n"})

	var told bytes.Buffer
	lock, err := images.PackageLock{}.Resolve(t.Context(), "node", []string{"greeting"},
		images.ResolveOptions{Progress: &told, Registry: npm.URL})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told.String(), "greeting has an installation script, which is not run") {
		t.Errorf("got %s, want to be told of the script", told.String())
	}
	extra, err := lock.Extra("node", []string{"greeting"})
	if err != nil {
		t.Fatal(err)
	}
	built, err := images.Build(t.Context(), images.BuildOptions{Home: home, Name: "node", Progress: t.Output(),
		Registry: npm.URL, Extra: extra})
	if err != nil {
		t.Fatal(err)
	}
	image, err := images.OpenWith(home, "node", extra)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	for name, want := range map[string]bool{
		"node_modules/greeting/index.js": true, "node_modules/words/index.js": true, "node_modules/.bin": false,
		"node_modules/.package-lock.json": false,
	} {
		if _, err := os.Stat(filepath.Join(image.RootFS, name)); (err == nil) != want {
			t.Errorf("%s: got %v, want there %v", name, err, want)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a package's script ran on the host")
	}
	if len(built.Packages) < 3 {
		t.Errorf("got %v, want the packages of npm among those of the image", built.Packages)
	}
	if _, err := (images.PackageLock{}).Resolve(t.Context(), "node", []string{"absent"},
		images.ResolveOptions{Registry: npm.URL}); err == nil || !strings.Contains(err.Error(), "was not found") {
		t.Errorf("a package that is not there: got %v", err)
	}
}
