package daemon

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/problem"
)

// signer issues tokens like an authorization server.
type signer struct {
	t      *testing.T
	url    string
	key    ed25519.PrivateKey
	server *httptest.Server
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{t: t, key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"issuer": s.url, "jwks_uri": s.url + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k", Use: "sig"}}})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url, s.server = server.URL, server
	return s
}

// token returns an access token of a person for a client.
func (s *signer) token(subject, client, scope string) string {
	s.t.Helper()
	opts := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "k")
	made, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: s.key}, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{
		"iss": s.url, "aud": "http://127.0.0.1/mcp", "sub": subject, "client_id": client, "scope": scope,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	signed, err := made.Sign(claims)
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// C-082, C-083, C-086: the answer to a request without a token, or with a token that lacks a
// scope, contains the metadata URL and the scopes to request.
func TestSigningInIsExplained(t *testing.T) {
	issuer := newSigner(t)
	s := serve(t, "auth: {issuer: \""+issuer.url+
		"\", audience: \"http://127.0.0.1/mcp\", scopes: {airlock.use: {rights: [run]}, airlock.look: {rights: "+
		"[audit]}, airlock.manage: {rights: [agents]}}}\n")
	const metadata = `resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource`
	for path, test := range map[string]struct{ resource, scope string }{
		"/mcp": {"/mcp", "airlock.use"}, kernelPath: {kernelPath, "airlock.use"},
		"/v1/agents": {"/mcp", "airlock.manage"},
	} {
		for _, tc := range []struct {
			name, token, challenge, code string
			status                       int
		}{
			{"no token", "", `scope="airlock.use"`, "unauthorized", http.StatusUnauthorized},
			{"no valid token", "a.b.c", `error="invalid_token"`, "unauthorized", http.StatusUnauthorized},
			{"a token without rights", issuer.token("ann", "c", "airlock.look"),
				`error="insufficient_scope", scope="` + test.scope + ` airlock.look"`, "insufficient_scope",
				http.StatusForbidden},
		} {
			res, body := s.post(path, tc.token, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			want := "Bearer " + tc.challenge + ", " + metadata + test.resource + `"`
			if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != tc.status || got != want {
				t.Errorf("%s, %s: got %d, %s\nwant %d, %s", path, tc.name, res.StatusCode, got, tc.status, want)
			}
			var told problem.Body
			if err := json.Unmarshal(body, &told); err != nil || told.Error.Code != tc.code ||
				told.Error.Message == "" {
				t.Errorf("%s, %s: got %s, %v, want the code %s", path, tc.name, body, err, tc.code)
			}
		}
	}
	for _, path := range []string{"", "/mcp"} {
		status, body := s.get(auth.MetadataPath + path)
		var m auth.Metadata
		if err := json.Unmarshal([]byte(body), &m); err != nil || status != http.StatusOK ||
			m.Resource != "http://127.0.0.1/mcp" ||
			len(m.AuthorizationServers) != 1 || m.AuthorizationServers[0] != issuer.url || len(m.ScopesSupported) != 3 {
			t.Errorf("the metadata at %q: got %d, %s", path, status, body)
		}
	}
}

// post sends a body with a token, which may be "".
func (s *served) post(path, token, body string) (*http.Response, []byte) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res, raw
}

// No caller can see, cancel or read objects of another caller: another person, another client
// of one person, or a caller with a token of Airlock.
func TestCallersDoNotSeeEachOther(t *testing.T) {
	issuer := newSigner(t)
	s := serve(t, "auth: {issuer: \""+issuer.url+"\", audience: \"http://127.0.0.1/mcp\"}\n")
	own := issuer.token("ann", "laptop", "run")
	others := map[string]string{
		"another person":                         issuer.token("bob", "laptop", "run"),
		"another client of the same person":      issuer.token("ann", "phone", "run"),
		"a token of Airlock's own for that name": s.token("ann", auth.ScopeRun),
	}
	for _, revision := range revisions {
		mine := s.connect(own, revision)
		going, text := s.run(mine, map[string]any{"language": "python", "code": "import time\ntime.sleep(60)",
			"background": true})
		id, _ := going["run_id"].(string)
		if id == "" {
			t.Fatalf("%s: got %v, %s", revision, going, text)
		}
		files, text := s.run(mine, map[string]any{"language": "python",
			"code": "client.attach(b'a,b', 'text/csv', 'table.csv')\nresult = 1"})
		fileRun, _ := files["run_id"].(string)
		uri := "airlock://runs/" + fileRun + "/table.csv"
		if _, err := mine.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil {
			t.Errorf("%s: one's own file: %v, %s", revision, err, text)
		}
		for name, token := range others {
			session := s.connect(token, revision)
			for tool, want := range map[string]string{"get_run": "There is no such run",
				"cancel_run": "There is no run of that ID"} {
				res, err := session.CallTool(t.Context(),
					&mcp.CallToolParams{Name: tool, Arguments: map[string]any{"run_id": id}})
				if err != nil {
					t.Fatal(err)
				}
				if text, _ := json.Marshal(res.Content); !strings.Contains(string(text), want) {
					t.Errorf("%s, %s, %s: got %s, want %q", revision, name, tool, text, want)
				}
			}
			if res, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Errorf("%s, %s: got the file %v", revision, name, res)
			}
			if list, err := session.ListResources(t.Context(), nil); err != nil || len(list.Resources) != 0 {
				t.Errorf("%s, %s: got files %v, %v", revision, name, list, err)
			}
		}
		if res, err := mine.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancel_run",
			Arguments: map[string]any{"run_id": id}}); err != nil || res.IsError {
			t.Errorf("%s: cancelling one's own run: %v, %v", revision, res, err)
		}
	}
}
