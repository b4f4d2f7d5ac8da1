package oauth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/airlock-mcp/airlock/internal/reach"
)

// A server on the internet cannot have Airlock ask what only this machine reaches.
func TestNothingNearerIsReached(t *testing.T) {
	asked := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer inner.Close()
	for _, nearest := range []reach.Distance{reach.Public, reach.Private} {
		w := newWire(&reach.Dialer{Nearest: nearest})
		if err := w.document(t.Context(), inner.URL+"/.well-known/openid-configuration", &struct{}{}); !errors.Is(
			err, reach.ErrNearer) || asked {
			t.Errorf("got %v, want %v", err, reach.ErrNearer)
		}
		w.close()
	}
}

func TestSecure(t *testing.T) {
	for address, want := range map[string]bool{
		"https://x.example/a": true, "http://127.0.0.1:80/": true, "http://localhost:1": true, "http://[::1]:1/": true,
		"http://x.example": false, "http://10.0.0.1": false, "http://127.0.0.1.evil.example": false,
		"http://localhost.evil.example": false,
		"javascript:alert(1)":           false, "file:///etc/passwd": false, "https://user:pass@x.example": false,
		"https://x.example/#a": false, "": false, "https://": false,
	} {
		if got := secure(address) == nil; got != want {
			t.Errorf("%q: got %t, want %t", address, got, want)
		}
	}
}

func TestWhoseMetadataTheyAre(t *testing.T) {
	const root = "https://x.example/.well-known/oauth-protected-resource"
	tests := []struct {
		resource, server, address string
		want                      bool
	}{
		{"https://x.example/mcp", "https://x.example/mcp", "https://elsewhere.example/any", true},
		{"https://X.example/mcp/", "https://x.example/mcp", root + "/mcp", true},
		{"https://x.example", "https://x.example/mcp", root, true},
		{"https://x.example/", "https://x.example/mcp", root, true},
		{"https://x.example/a", "https://x.example/a/mcp", root + "/a", true},
		{"https://x.example", "https://x.example/mcp", root + "/mcp", false},
		{"https://x.example/m", "https://x.example/mcp", root + "/m", false},
		{"https://x.example/other", "https://x.example/mcp", root + "/other", false},
		{"https://x.example:444", "https://x.example/mcp", "https://x.example:444/.well-known/oauth-protected-resource",
			false},
		{"http://x.example", "https://x.example/mcp", root, false},
		{"", "https://x.example/mcp", root, false},
	}
	for _, test := range tests {
		if got := isFor(test.resource, test.server, test.address); got != test.want {
			t.Errorf("%q for %q at %q: got %t, want %t", test.resource, test.server, test.address, got, test.want)
		}
	}
}
