package signin

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// service is airlock serve, to which people sign in at a provider.
type service struct {
	url      string
	file     string // its configuration
	provider *provider
	said     *testenv.Output
}

// scopesOfService are those that the provider gives for it.
const scopesOfService = "airlock.use,airlock.look,airlock.manage"

// startService starts a service with a separate provider, the image for Python and further images.
func startService(t *testing.T, images ...string) *service {
	t.Helper()
	testenv.OwnHome(t, append(images, "python")...)
	p := startProvider(t, "-jwt", "-scopes", scopesOfService, "-client", "laptop,phone")
	return serve(t, p, `types: [JWT], scopes: {airlock.use: {rights: [run]}, airlock.look: {rights: [audit]}, `+
		`airlock.manage: {rights: [agents]}}`)
}

// serve starts a service with a provider, further keys of its section auth, and other sections, in the state directory
// that the test has made.
func serve(t *testing.T, p *provider, more string, sections ...string) *service {
	t.Helper()
	// The audience has the port, so the address is open before the configuration is written.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	passed, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	configuration := filepath.Join(t.TempDir(), "airlock.yaml")
	s := &service{url: "http://" + listener.Addr().String(), file: configuration, provider: p, said: &testenv.Output{}}
	text := testenv.WithoutPool(fmt.Sprintf("auth: {issuer: %q, audience: %q, %s}\nface: {callTool: true}\n%s",
		p.Issuer, s.url+"/mcp", more, strings.Join(sections, "\n")))
	if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, "sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`,
		filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), "serve", "--config", configuration)
	command.Env = append(os.Environ(), "QWED_MCP_TRUSTED_CODE_EXECUTION=true")
	command.ExtraFiles, command.Stderr = []*os.File{passed}, s.said
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		command.Wait() // it was killed
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || strings.TrimSpace(line) != s.url {
		t.Fatalf("got the address %q, %v, want %s\n%s", line, err, s.url, s.said)
	}
	return s
}

// Where browsers are sent at the end of a sign-in; nothing listens there.
const redirect = "http://127.0.0.1/callback"

// tokens are what a provider gives for a code.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
}

// signIn gets a user's tokens for a client: authorization code with PKCE (RFC 7636)
// and a resource (RFC 8707).
func (p *provider) signIn(t *testing.T, user, client, resource, scopes string) tokens {
	t.Helper()
	verifier, state := rand.Text(), rand.Text()
	challenge := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "scope": {scopes},
		"state":                 {state},
		"code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
	}
	if resource != "" {
		query.Set("resource", resource)
	}
	back, err := url.Parse(browseAs(t, p.Issuer+"/auth?"+query.Encode(), user))
	if err != nil || back.Query().Get("state") != state {
		t.Fatalf("the browser was sent to %v, %v", back, err)
	}
	return p.token(t, url.Values{
		"grant_type": {"authorization_code"}, "client_id": {client}, "redirect_uri": {redirect},
		"code": {back.Query().Get("code")}, "code_verifier": {verifier},
	})
}

// token asks the token endpoint.
func (p *provider) token(t *testing.T, form url.Values) tokens {
	t.Helper()
	response, err := http.PostForm(p.Issuer+"/oauth/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	var got tokens
	if err != nil || json.Unmarshal(raw, &got) != nil || got.Access == "" {
		t.Fatalf("the provider gives no token: %s, %v", raw, err)
	}
	return got
}

// paths are the paths that require a token: every MCP face, and the API.
var paths = []string{"/mcp", "/kernel/mcp", "/gateway/mcp", "/v1/agents"}

// answer is how a request is answered.
type answer struct {
	status    int
	challenge string // of WWW-Authenticate
	code      string // of the error in the body
	body      string
}

// ask shows a token at a path.
func (s *service) ask(t *testing.T, path, token string) answer {
	t.Helper()
	method, body := http.MethodGet, ""
	if strings.HasSuffix(path, "/mcp") {
		method, body = http.MethodPost,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list",`+
				`"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
				`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	request.Header.Set("Mcp-Method", "tools/list")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Error struct{ Code any }
	}
	_ = json.Unmarshal(raw, &told) // a stream of events is no JSON
	code, _ := told.Error.Code.(string)
	return answer{response.StatusCode, response.Header.Get("WWW-Authenticate"), code, string(raw)}
}
