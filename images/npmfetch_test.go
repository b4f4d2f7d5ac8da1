package images

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
)

// issue 27: Node's archive is fetched without npm. It is not kept if it has another digest
// than the announced one, comes over plain HTTP, or is refused by the registry.
func TestNodeIsFetchedWithoutNPM(t *testing.T) {
	archive := []byte("an archive")
	sum := sha512.Sum512(archive)
	integrity := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	var tarball string
	mux := http.NewServeMux()
	mux.HandleFunc("/mirror/{name}/{version}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"dist":{"tarball":%q,"integrity":%q}}`, tarball, integrity)
	})
	mux.HandleFunc("/mirror/node/-/node-1.tgz", func(w http.ResponseWriter, _ *http.Request) { w.Write(archive) })
	server := httptest.NewServer(mux)
	defer server.Close()
	registry, err := url.Parse(server.URL + "/mirror/")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, tarball, integrity, want string }{
		{"a mirror", defaultRegistry + "node/-/node-1.tgz", integrity, ""},
		{"the address as announced", server.URL + "/mirror/node/-/node-1.tgz", integrity, ""},
		{"another digest", defaultRegistry + "node/-/node-1.tgz", "sha512-AAAA", "has the digest"},
		{"no digest", defaultRegistry + "node/-/node-1.tgz", "", "has the digest"},
		{"plain HTTP", "http://example.com/node-1.tgz", integrity, "not one with https"},
		{"a file", "file:///etc/passwd", integrity, "not one with https"},
		{"nothing there", defaultRegistry + "node/-/node-2.tgz", integrity, "404"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kept := integrity
			defer func() { integrity = kept }()
			tarball, integrity = test.tarball, test.integrity
			file, err := fetchFrom(t.Context(), registry, "node", "1", t.TempDir())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %q, %v, want %q", file, err, test.want)
				}
				return
			}
			if got, readErr := os.ReadFile(file); err != nil || readErr != nil || string(got) != string(archive) {
				t.Errorf("got %q, %v, %v", got, err, readErr)
			}
		})
	}
}

// The registry is that of npm's settings, so that a mirror keeps working.
func TestTheRegistryOfNPMsSettings(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(home+"/.npmrc", []byte("fund=false\nregistry = https://mirror.example/npm/\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for want, env := range map[string]map[string]string{
		defaultRegistry:               {"HOME": t.TempDir()},
		"https://mirror.example/npm/": {"HOME": home},
		"https://other.example/":      {"HOME": home, "npm_config_registry": "https://other.example/"},
	} {
		got, err := npmRegistry(func(name string) string { return env[name] })
		if err != nil || got.String() != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
	if _, err := npmRegistry(func(string) string { return "http://example.com" }); err == nil {
		t.Error("a registry without TLS is used")
	}
}
