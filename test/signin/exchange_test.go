package signin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// exchanging is an Airlock whose users sign in at an identity provider, and a server with its authorization server.
type exchanging struct {
	*airlock
	idp, issuer *provider // issuer issues the tokens of the server
	server      *notes
}

// startExchanging starts all parts. grant is enterprise (ID-JAG) or token_exchange.
func startExchanging(t *testing.T, grant string) *exchanging {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "actors.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	listen := testenv.ReservedAddress(t)
	_, port, _ := strings.Cut(listen, ":")
	e := &exchanging{idp: startProvider(t, "-jwt", "-confidential", "airlock-idp", "-actors", file, "-redirect",
		"http://"+listen+"/callback")}
	if e.issuer = e.idp; grant == "enterprise" {
		e.issuer = startProvider(t, "-trust", e.idp.Issuer, "-confidential", "airlock")
	}
	e.server = startNotesOf(t, e.issuer.Issuer, func(_ context.Context, token string) string {
		subject, _ := e.claims(token)["sub"].(string)
		return subject
	})
	e.airlock = newAirlock(t, e.server)
	own := ""
	if grant == "enterprise" {
		own = fmt.Sprintf("issuer: %q, clientId: airlock, clientSecret: hunter2, ", e.issuer.Issuer)
	}
	configuration := fmt.Sprintf("mcpServers: {notes: {url: %q}}\n"+
		"kernel: {actions: {who: {server: notes, tool: whoami}}}\nservers: {notes: "+
		"{trustAnnotations: true, oauth: {grant: %s, %sredirectPort: %s, delegate: true, provider: {issuer: %q, "+
		"clientId: airlock-idp, clientSecret: hunter2, clientKey: %q}}}}\n"+
		"audit: {clearArguments: true}\n",
		e.server.url, grant, own, port, e.idp.Issuer,
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	if err := os.WriteFile(e.configuration, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	return e
}

// claims returns what a token of the server is for; nil for an invalid one.
func (e *exchanging) claims(token string) (claims map[string]any) {
	if e.issuer != e.idp {
		response, err := http.Get(e.issuer.Issuer + "/granted?token=" + url.QueryEscape(token))
		if err != nil {
			return nil
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&claims) != nil {
			return nil
		}
		return claims
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || e.idp.subject(context.Background(), token) == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil || !strings.Contains(fmt.Sprint(claims["aud"]), e.server.url) {
		return nil
	}
	return claims
}

// chain returns the parties of a delegation: the kinds, and the last name.
func chain(claims map[string]any) (kinds []string, host string) {
	act, _ := claims["act"].(map[string]any)
	for ; act != nil; act, _ = act["act"].(map[string]any) {
		kind, _ := act["kind"].(string)
		host, _ = act["sub"].(string)
		kinds = append(kinds, kind)
	}
	return kinds, host
}

// Issue 31: the server gets a token of the person, with the chain program, agent, host, in both eras and over both
// grants, and the audit log has the same chain.
func TestADelegationReachesTheServer(t *testing.T) {
	testenv.Sandbox(t)
	for _, grant := range []string{"enterprise", "token_exchange"} {
		t.Run(grant, func(t *testing.T) {
			e := startExchanging(t, grant)
			e.login(t, follows)
			address := e.serve(t)
			for _, version := range []string{"2025-11-25", "2026-07-28"} {
				host := e.at(t, address+"/mcp", e.token(t, setup.Principal()), version)
				got, raw := run(t, host)
				claims := e.claims(e.server.newest())
				kinds, name := chain(claims)
				if !got.OK || claims["sub"] != "id1" || strings.Join(kinds, " ") != "program host" ||
					name != "laptop 7" {
					t.Errorf("%s: got %s and the claims %v\n%s", version, raw, claims, e.said)
				}
				if strings.Contains(raw, e.server.newest()) {
					t.Errorf("the token reaches the program: %s", raw)
				}
			}
			recorded, err := e.command(t.Context(), "audit", "export").Output()
			if err != nil || !strings.Contains(string(recorded), `"delegation":{"act":{"act":{"claimed":true,`+
				`"kind":"host","sub":"laptop 7"},"kind":"program"`) {
				t.Errorf("the audit log has no chain: %v\n%s", err, recorded)
			}
			for _, secret := range append(e.server.all(), "hunter2", "PRIVATE KEY") {
				if strings.Contains(e.said.String(), secret) || strings.Contains(string(recorded), secret) {
					t.Error("a secret is in the log or in the audit log")
				}
			}
		})
	}
}

// at connects a host to a face.
func (e *exchanging) at(t *testing.T, endpoint, token, version string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "laptop", Version: "7"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: testenv.Bearer(token)},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%v\n%s", err, e.said)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// Issue 31: a grant of the identity provider that is for another server, authorization server or client, or names
// another issuer, or not who acts, is not handed on. The call fails with a sentence, and works again afterwards.
func TestGrantsForOthersAreNotHandedOn(t *testing.T) {
	testenv.Sandbox(t)
	e := startExchanging(t, "enterprise")
	e.login(t, follows)
	for _, claim := range []string{"aud https://other.example", "iss https://other.example", "client_id other",
		"resource https://other.example/mcp", "act nobody"} {
		before := e.server.calls()
		e.idp.Obey(t, "claim "+claim)
		host := e.host(t) // a new process, which has no token yet
		if got, raw := run(t, host); got.OK || !strings.Contains(raw, "identity provider") ||
			e.server.calls() != before {
			t.Errorf("%s: got %s, want an error about the identity provider", claim, raw)
		}
		name, _, _ := strings.Cut(claim, " ")
		e.idp.Obey(t, "claim "+name)
	}
	works(t, e.host(t))
}

// Issue 31: a token of one principal is never used for another, and none is used after the sign-in has ended.
func TestExchangedTokensBelongToOnePrincipal(t *testing.T) {
	testenv.Sandbox(t)
	for _, grant := range []string{"enterprise", "token_exchange"} {
		t.Run(grant, func(t *testing.T) {
			e := startExchanging(t, grant)
			e.login(t, follows)
			address := e.serve(t)
			e.login(t, follows, "--for", "ann")
			own, ann, bob := e.caller(t, address, ""), e.caller(t, address, "ann"), e.caller(t, address, "bob")
			works(t, own)
			mine := e.server.newest()
			works(t, ann)
			anns := e.server.newest()
			if mine == anns {
				t.Error("two principals have one token")
			}
			before := e.server.calls()
			if got, raw := run(t, bob); got.OK || e.server.calls() != before ||
				!strings.Contains(got.Error.Message, "airlock login notes --for bob") {
				t.Errorf("bob, who has not signed in: got %s", raw)
			}
			if out, err := e.command(t.Context(), "logout", "notes", "--for", "ann").Output(); err != nil {
				t.Errorf("logout: %s, %v", out, err)
			}
			before = e.server.calls()
			if got, raw := run(t, ann); got.OK || !strings.Contains(got.Error.Message, "--for ann") ||
				e.server.calls() != before {
				t.Errorf("ann, signed out: got %s", raw)
			}
			works(t, own)
		})
	}
}

// Issue 31: calls of an agent use the sign-in of the person who registered it, and name the agent, over the faces for
// code, for the kernel's tools, and over its API. Another person's agent has no sign-in.
func TestADelegationNamesTheAgent(t *testing.T) {
	testenv.Sandbox(t)
	e := startExchanging(t, "enterprise")
	e.login(t, follows, "--for", "ann")
	anns, bobs := e.registrar(t, "ann"), e.registrar(t, "bob")
	e.login(t, follows) // the list of tools is that of the user whom Airlock runs for
	address := e.serve(t)
	agent, id := e.register(t, address, anns)
	check := func(face string, want ...string) {
		t.Helper()
		claims := e.claims(e.server.newest())
		kinds, host := chain(claims)
		if claims["sub"] != "id1" || strings.Join(kinds, " ") != strings.Join(want, " ") || host != "laptop 7" {
			t.Errorf("%s: got the claims %v\n%s", face, claims, e.said)
		}
	}
	if got, raw := run(t, e.at(t, address+"/mcp", agent, "2025-11-25")); !got.OK {
		t.Errorf("got %s", raw)
	}
	check("/mcp", "program", "agent", "host")
	before := e.server.calls()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		got, err := e.at(t, address+"/kernel/mcp", agent, version).CallTool(t.Context(), &mcp.CallToolParams{
			Name:      "kernel_execute",
			Arguments: map[string]any{"action": "who", "agent_id": id, "params": map[string]any{}}})
		if err != nil || got.IsError {
			t.Errorf("kernel: got %+v, %v", got, err)
		}
		check("/kernel/mcp "+version, "agent", "host")
	}
	if got := e.server.calls() - before; got != 2 {
		t.Errorf("got %d calls of the kernel", got)
	}
	other, _ := e.register(t, address, bobs)
	before = e.server.calls()
	if got, raw := run(t, e.at(t, address+"/mcp", other, "2025-11-25")); got.OK || e.server.calls() != before ||
		!strings.Contains(got.Error.Message, "airlock login notes --for bob") {
		t.Errorf("an agent of bob, who has not signed in: got %s", raw)
	}
}

// registrar creates a token that may register agents.
func (e *exchanging) registrar(t *testing.T, principal string) string {
	t.Helper()
	token, err := e.command(t.Context(), "tokens", "create", "sdk", "--for", principal, "--scope",
		"run,agents:supervised").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, e.said)
	}
	return strings.TrimSpace(string(token))
}

// register registers an agent and returns its token and its ID.
func (e *exchanging) register(t *testing.T, address, token string) (agentToken, id string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/agents",
		strings.NewReader(`{"name": "Analyst", "type": "supervised", `+
			`"permissions": {"allowed_tools": ["notes/whoami"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := testenv.Bearer(token).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var made struct {
		ID    string `json:"agent_id"`
		Token string `json:"agent_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil || made.Token == "" {
		t.Fatalf("registering an agent: HTTP %d, %v\n%s", response.StatusCode, err, e.said)
	}
	return made.Token, made.ID
}
