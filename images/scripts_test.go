package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// Issue 30: the installation scripts of a package do not run. npm alone runs them, which shows that the package has
// some.
func TestInstallationScriptsDoNotRun(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	manifest := fmt.Sprintf(`{"name":"evil","version":"1.0.0","scripts":{"preinstall":"echo >> %[1]s",`+
		`"install":"echo >> %[1]s","postinstall":"echo >> %[1]s","prepare":"echo >> %[1]s"}}`, mark)
	registry := evilRegistry(t, manifest, `"hasInstallScript":true`)
	dir := t.TempDir()
	if err := npm(t.Context(), dir, registry, "install", "evil"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "evil", "package.json")); err != nil {
		t.Fatalf("the package is not installed: %v", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("an installation script of the package ran")
	}
	alone := exec.CommandContext(t.Context(), "npm", "install", "evil", "--registry", registry, "--cache",
		t.TempDir(), "--no-audit", "--no-fund", "--no-update-notifier")
	alone.Dir = t.TempDir()
	if out, err := alone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("npm ran no script of the package either: %v", err)
	}
}

// Issue 30: a package may name programs for systems for which none is published; it is installed without them.
func TestOptionalPackagesThatAreNotPublished(t *testing.T) {
	const optional = `"optionalDependencies":{"evil-plan9":"1.0.0"}`
	registry := evilRegistry(t, `{"name":"evil","version":"1.0.0",`+optional+`}`, optional)
	lock, err := resolveModules(t.Context(), []string{"evil"}, registry, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := writeManifest(dir, []string{"evil"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), lock, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := npm(t.Context(), dir, registry, "ci"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "evil", "package.json")); err != nil {
		t.Error(err)
	}
}

// evilRegistry serves the package "evil" and returns its address. members are of its version in the registry.
func evilRegistry(t *testing.T, manifest, members string) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		if testenv.WantsSandboxes() {
			t.Fatalf("all tests were asked for, but %v", err)
		}
		t.Skip("needs npm: run `make test`")
	}
	archive := tarball(t, manifest)
	sum := sha512.Sum512(archive)
	mux := http.NewServeMux()
	registry := httptest.NewServer(mux)
	t.Cleanup(registry.Close)
	mux.HandleFunc("/evil", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"name":"evil","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"evil",`+
			`"version":"1.0.0",%s,"dist":{"tarball":"%s/evil.tgz","integrity":"sha512-%s"}}}}`, members,
			registry.URL, base64.StdEncoding.EncodeToString(sum[:]))
	})
	mux.HandleFunc("/evil.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	return registry.URL
}

// tarball returns an npm package with one file.
func tarball(t *testing.T, manifest string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	header := &tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(manifest))}
	if err := files.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Write([]byte(manifest)); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
