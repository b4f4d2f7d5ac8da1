// Package signin signs in with the real program at a real OpenID provider: Airlock to
// upstream servers, and hosts to Airlock.
package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// provider is an authorization server with what people and servers ask of it.
type provider struct{ *testenv.OpenIDProvider }

func startProvider(t *testing.T, flags ...string) *provider {
	t.Helper()
	return &provider{testenv.StartOpenIDProvider(t,
		append([]string{"-listen", testenv.ReservedAddress(t)}, flags...)...)}
}

// again starts the provider at the same address, without anything that it knew.
func (p *provider) again(t *testing.T) {
	t.Helper()
	p.Stop()
	*p = *startProvider(t, "-listen", strings.TrimPrefix(p.Issuer, "http://"))
}

// revoke makes a token invalid (RFC 7009).
func (p *provider) revoke(t *testing.T, token string) {
	t.Helper()
	response, err := http.PostForm(p.Issuer+"/revoke", url.Values{"token": {token}, "client_id": {"airlock"}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("revoking: got HTTP %d", response.StatusCode)
	}
}

// subject returns the subject of a token from the provider; empty for an invalid one.
func (p *provider) subject(ctx context.Context, token string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Issuer+"/userinfo", nil)
	if err != nil {
		return ""
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var info struct {
		Subject string `json:"sub"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&info) != nil {
		return ""
	}
	return info.Subject
}

// notes is an MCP server whose one tool returns the subject of the token that it was called with.
type notes struct {
	url     string
	subject func(ctx context.Context, token string) string // of a token; empty for an invalid one
	// If slow is set, lists need no token, and a call without one is refused when slow returns.
	slow func()

	mu     sync.Mutex
	tokens []string // that came with requests, each once in a row
	called []string // those that came with calls of the tool: Airlock reads lists by itself
}

func startNotes(t *testing.T, p *provider) *notes {
	t.Helper()
	return startNotesOf(t, p.Issuer, p.subject)
}

// startNotesOf is startNotes for the tokens of an issuer.
func startNotesOf(t *testing.T, issuer string, subject func(ctx context.Context, token string) string) *notes {
	t.Helper()
	n := &notes{subject: subject}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	type none struct{}
	type answer struct {
		Who  string `json:"who"`
		Echo string `json:"echo"`
	}
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Description: "Says who calls.", Annotations: readOnly},
		func(ctx context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, answer, error) {
			header := r.Extra.Header.Get("Authorization")
			n.mu.Lock()
			n.called = append(n.called, bearer(header))
			n.mu.Unlock()
			return nil, answer{n.subject(ctx, bearer(header)), header}, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"resource": n.url, "authorization_servers": []string{issuer},
			"scopes_supported": []string{"openid", "profile"}})
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		token := bearer(r.Header.Get("Authorization"))
		n.note(token)
		if n.slow != nil && token == "" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !bytes.Contains(body, []byte(`"tools/call"`)) {
				handler.ServeHTTP(w, r)
				return
			}
			n.slow()
		}
		if n.subject(r.Context(), token) == "" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+
				strings.TrimSuffix(n.url, "/mcp")+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.url = "http://" + listener.Addr().String() + "/mcp"
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	t.Cleanup(func() { web.Close(); <-served })
	return n
}

func bearer(header string) string {
	token, _ := strings.CutPrefix(header, "Bearer ")
	return token
}

func (n *notes) note(token string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if token != "" && (len(n.tokens) == 0 || n.tokens[len(n.tokens)-1] != token) {
		n.tokens = append(n.tokens, token)
	}
}

// newest is the token of the last call; empty before the first.
func (n *notes) newest() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.called) == 0 {
		return ""
	}
	return n.called[len(n.called)-1]
}

// calls is how often the tool was called.
func (n *notes) calls() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.called)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.tokens...)
}

// requestID finds the hidden field of the provider's form.
var requestID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// The users of the provider; the subjects of their tokens.
const (
	firstUser, firstSubject   = "test-user@127.0.0.1", "id1"
	secondUser, secondSubject = "test-user2", "id2"
)

// browse signs the first user in at the provider and returns the address that the
// browser is sent to at the end, which it does not open.
func browse(t *testing.T, address string) string { return browseAs(t, address, firstUser) }

// browseAs is browse for a user.
func browseAs(t *testing.T, address, user string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/callback" && r.URL.Query().Get("state") != "" {
			last = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	response, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	response.Body.Close()
	found := requestID.FindSubmatch(page)
	if err != nil || found == nil {
		t.Fatalf("%s shows no form (%v):\n%s", address, err, page)
	}
	response, err = browser.PostForm(response.Request.URL.Scheme+"://"+response.Request.URL.Host+"/login/username",
		url.Values{
			"id": {string(found[1])}, "username": {user}, "password": {"verysecure"},
		})
	if err != nil {
		t.Fatal(err)
	}
	page, _ = io.ReadAll(response.Body)
	response.Body.Close()
	if last == "" {
		t.Fatalf("the sign-in does not end at Airlock:\n%s", page)
	}
	return last
}
