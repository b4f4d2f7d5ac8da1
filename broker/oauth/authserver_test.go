package oauth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// world is an MCP server's address and the authorization server that signs in for it, with
// configurable misbehaviour. The zero value behaves correctly.
type world struct {
	t        *testing.T
	resource *httptest.Server
	issuer   *httptest.Server

	// Change alters documents before they are sent, by path.
	change map[string]func(document map[string]any)
	// Token alters answers of the token endpoint; it returns the status.
	token func(form url.Values, answer map[string]any) int

	isAway atomic.Bool // the token endpoint is

	revoke   http.HandlerFunc // called before a token is revoked; may be nil
	userinfo http.HandlerFunc // of the authorization server, or nil

	mcp http.Handler // of the MCP server, or nil

	mu       sync.Mutex
	codes    map[string]url.Values // the authorization request, by code; used ones are gone
	refresh  map[string]bool       // refresh tokens that are good
	issued   int
	requests []string // METHOD path, in the order of arrival
	forms    []url.Values
	asked    []url.Values // authorization requests
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, change: map[string]func(map[string]any){}, codes: map[string]url.Values{},
		refresh: map[string]bool{}}
	w.resource = httptest.NewServer(http.HandlerFunc(w.serveResource))
	w.issuer = httptest.NewServer(http.HandlerFunc(w.serveIssuer))
	t.Cleanup(w.resource.Close)
	t.Cleanup(w.issuer.Close)
	return w
}

func (w *world) url() string { return w.resource.URL + "/mcp" }

func (w *world) note(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r.Method+" "+r.URL.Path)
}

// count returns how many requests went to a path.
func (w *world) count(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, request := range w.requests {
		if strings.HasSuffix(request, " "+path) {
			n++
		}
	}
	return n
}

func (w *world) answer(rw http.ResponseWriter, path string, status int, document map[string]any) {
	if change := w.change[path]; change != nil {
		change(document)
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	json.NewEncoder(rw).Encode(document)
}

const (
	prmPath   = "/.well-known/oauth-protected-resource/mcp"
	asPath    = "/.well-known/oauth-authorization-server"
	tokenPath = "/token"
)

func (w *world) serveResource(rw http.ResponseWriter, r *http.Request) {
	w.note(r)
	if r.URL.Path == "/mcp" && w.mcp != nil {
		w.mcp.ServeHTTP(rw, r)
		return
	}
	if r.URL.Path != prmPath {
		http.NotFound(rw, r)
		return
	}
	w.answer(rw, prmPath, 200, map[string]any{"resource": w.url(), "authorization_servers": []string{w.issuer.URL},
		"scopes_supported": []string{"read"}})
}

func (w *world) serveIssuer(rw http.ResponseWriter, r *http.Request) {
	w.note(r)
	switch r.URL.Path {
	case asPath:
		w.answer(rw, asPath, 200, map[string]any{
			"issuer": w.issuer.URL, "authorization_endpoint": w.issuer.URL + "/authorize",
			"token_endpoint":        w.issuer.URL + tokenPath,
			"registration_endpoint": w.issuer.URL + "/register", "revocation_endpoint": w.issuer.URL + "/revoke",
			"code_challenge_methods_supported":               []string{"S256"},
			"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic"},
			"authorization_response_iss_parameter_supported": true,
		})
	case "/register":
		w.answer(rw, "/register", 201, map[string]any{"client_id": "client-of-airlock"})
	case "/authorize":
		w.consent(rw, r)
	case tokenPath:
		w.grant(rw, r)
	case "/userinfo":
		w.userinfo(rw, r)
	case "/revoke":
		r.ParseForm()
		if w.revoke != nil {
			w.revoke(rw, r)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.refresh, r.PostForm.Get("token"))
	default:
		http.NotFound(rw, r)
	}
}

// consent agrees to everything at once.
func (w *world) consent(rw http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.mu.Lock()
	code := fmt.Sprintf("code-%d", len(w.asked))
	w.codes[code], w.asked = query, append(w.asked, query)
	w.mu.Unlock()
	answer := map[string]any{"code": code, "state": query.Get("state"), "iss": w.issuer.URL}
	if change := w.change["/authorize"]; change != nil {
		change(answer)
	}
	back := url.Values{}
	for name, value := range answer {
		back.Set(name, fmt.Sprint(value))
	}
	http.Redirect(rw, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (w *world) grant(rw http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	if w.isAway.Load() {
		http.Error(rw, "", http.StatusServiceUnavailable)
		return
	}
	w.mu.Lock()
	w.forms = append(w.forms, maps.Clone(r.PostForm))
	status, answer := w.grantLocked(r.PostForm)
	w.mu.Unlock()
	if w.token != nil {
		status = w.token(r.PostForm, answer)
	}
	w.answer(rw, tokenPath, status, answer)
}

func (w *world) grantLocked(form url.Values) (int, map[string]any) {
	switch form.Get("grant_type") {
	case "authorization_code":
		request, ok := w.codes[form.Get("code")]
		delete(w.codes, form.Get("code"))
		digest := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !ok || request.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(digest[:]) ||
			request.Get("redirect_uri") != form.Get("redirect_uri") {
			return 400, map[string]any{"error": "invalid_grant"}
		}
	case "refresh_token":
		if !w.refresh[form.Get("refresh_token")] {
			return 400, map[string]any{"error": "invalid_grant"}
		}
		delete(w.refresh, form.Get("refresh_token"))
	case "client_credentials":
	default:
		return 400, map[string]any{"error": "unsupported_grant_type"}
	}
	w.issued++
	answer := map[string]any{"access_token": fmt.Sprintf("access-token-%d", w.issued), "token_type": "Bearer",
		"expires_in": 3600}
	if form.Get("grant_type") != "client_credentials" {
		fresh := fmt.Sprintf("refresh-token-%d", w.issued)
		w.refresh[fresh], answer["refresh_token"] = true, fresh
	}
	return 200, answer
}

// scopes are those of the newest authorization request.
func (w *world) scopes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(strings.Fields(w.asked[len(w.asked)-1].Get("scope"))))
}
