package signin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// A tool of each face.
var toolOf = map[string]string{"/mcp": "run_code", "/kernel/mcp": "kernel_execute",
	"/gateway/mcp": "execute_python_code"}

// C-082, C-086: a host with only the URL of a face finds the provider through the 401, signs
// its user in, and is served; with the official SDKs, in both eras.
func TestHostsSignIn(t *testing.T) {
	testenv.Sandbox(t)
	s := startService(t, "verify")
	for face, tool := range toolOf {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run("go-sdk"+face+" "+revision, func(t *testing.T) {
				if got := goHost(t, s.url+face, revision, nil); !slices.Contains(got, tool) {
					t.Errorf("got the tools %q, want %q among them", got, tool)
				}
			})
		}
		for _, host := range []struct{ sdk, era string }{{"typescript1", "legacy"}, {"typescript2", "legacy"},
			{"typescript2", "modern"}} {
			t.Run(host.sdk+face+" "+host.era, func(t *testing.T) {
				if got := scriptHost(t, host.sdk, host.era, s.url+face, nil); !slices.Contains(got, tool) {
					t.Errorf("got the tools %q, want %q among them", got, tool)
				}
			})
		}
	}
}

// C-082, C-086: a host whose token lacks a right gets a challenge, requests more scopes, and
// succeeds. It keeps its earlier rights.
func TestHostsStepUp(t *testing.T) {
	testenv.Sandbox(t)
	s := startService(t, "verify")
	first := true
	narrow := func(found []string) []string {
		if first {
			first = false
			return []string{"airlock.look"}
		}
		return found
	}
	if got := goHost(t, s.url+"/mcp", "2026-07-28", narrow); !slices.Contains(got, "run_code") {
		t.Errorf("go-sdk: got the tools %q", got)
	}
	for _, host := range []struct{ sdk, era string }{{"typescript1", "legacy"}, {"typescript2", "legacy"},
		{"typescript2", "modern"}} {
		held := s.provider.signIn(t, firstUser, "laptop", s.url+"/mcp", "openid airlock.look")
		if got := scriptHost(t, host.sdk, host.era, s.url+"/mcp", &held); !slices.Contains(got, "run_code") {
			t.Errorf("%s, %s: got the tools %q", host.sdk, host.era, got)
		}
	}

	// Refusals of /v1 name the required scopes in the same way.
	held := s.provider.signIn(t, firstUser, "laptop", s.url+"/mcp", "openid airlock.use")
	refused := s.ask(t, "/v1/agents", held.Access)
	const want = `error="insufficient_scope", scope="airlock.manage airlock.use"`
	if refused.status != http.StatusForbidden || !strings.Contains(refused.challenge, want) {
		t.Fatalf("got %+v, want %s", refused, want)
	}
	more := s.provider.signIn(t, firstUser, "laptop", s.url+"/mcp", "openid airlock.manage airlock.use")
	for _, path := range paths {
		if got := s.ask(t, path, more.Access); got.status != http.StatusOK {
			t.Errorf("%s with more scopes: got %+v", path, got)
		}
	}
}

// goHost connects go-sdk's client to a face, signs in if required, and returns the names of
// the tools. narrow changes the requested scopes; it may be nil.
func goHost(t *testing.T, face, revision string, narrow func([]string) []string) []string {
	t.Helper()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "laptop"}, RedirectURL: redirect, ScopeFilter: narrow,
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult,
			error) {
			back, err := url.Parse(browse(t, args.URL))
			if err != nil {
				return nil, err
			}
			return &auth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state"),
				Iss: back.Query().Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: face, OAuthHandler: handler},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// scriptHost is goHost with a TypeScript SDK, which may have tokens already.
func scriptHost(t *testing.T, sdk, era, face string, held *tokens) []string {
	t.Helper()
	directory := filepath.Join(testenv.RepoRoot(t), "test", "conformance")
	given := map[string]any{"sdk": sdk, "era": era, "url": face, "client": "laptop", "redirect": redirect}
	if held != nil {
		given["tokens"] = map[string]string{"access_token": held.Access, "token_type": "Bearer"}
	}
	argument, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), testenv.SuiteNode(t), filepath.Join(directory, "clients", "signin.mjs"),
		string(argument))
	client := testenv.StartProgram(t, command)
	signIns := 0
	var names []string
	for lines := bufio.NewScanner(client.Out); lines.Scan(); {
		var said struct {
			Authorize string
			Tools     []string
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			t.Fatalf("%s, %v", lines.Text(), err)
		}
		if names = said.Tools; names != nil {
			break
		}
		if signIns++; signIns > 3 {
			t.Fatalf("the client signs in again and again\n%s", client.Err)
		}
		if _, err := io.WriteString(client.In, browse(t, said.Authorize)+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.End(); err != nil || signIns != 1 {
		t.Errorf("got %d sign-ins, %v, want one\n%s", signIns, err, client.Err)
	}
	return names
}
