package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// The scopes of an issuer can give every scope that a token issued by Airlock can have.
func TestAnIssuersScopesCanGiveEveryRight(t *testing.T) {
	if !slices.Equal(config.AuthRights, Scopes) {
		t.Errorf("got %q, want %q", config.AuthRights, Scopes)
	}
}

var scopes = []config.Scope{
	{Name: "everything", Rights: []string{ScopeRun, ScopeAudit, ScopeAgents}},
	{Name: "use", Rights: []string{ScopeRun}, Profile: "small"},
	{Name: "use.wide", Rights: []string{ScopeRun}, Profile: "wide"},
	{Name: "look", Rights: []string{ScopeAudit}}, {Name: "look.wide", Rights: []string{ScopeAudit}, Profile: "wide"},
	{Name: "register", Rights: []string{ScopeAgents}},
}

// The scopes in the challenge include the missing one and those that the client has.
func TestWhatARefusalTellsToAskFor(t *testing.T) {
	ofIssuer := func(profile string, rights ...string) caller.Caller {
		return caller.Caller{Principal: "ann", Kind: caller.User, Issuer: "https://login.example", Session: "s",
			Profile: profile, Scopes: rights}
	}
	own := caller.Caller{Principal: "ann", Kind: caller.User, Session: "s"}
	known := NewIssuer(config.Auth{Issuer: "https://login.example", Audience: ours,
		Scopes: scopes}, nil, nil)
	issuer := &Authenticator{Issuer: func() *Issuer { return known }, Profile: func() string { return "usual" }}
	const metadata = `resource_metadata="https://airlock.example.com/.well-known/oauth-protected-resource/mcp"`
	for name, test := range map[string]struct {
		by        *Authenticator
		err       error
		status    int
		challenge string
	}{
		"no token": {issuer, ErrNone, 401,
			`Bearer scope="use", ` + metadata},
		"a token that is not valid": {issuer, ErrInvalid, 401,
			`Bearer error="invalid_token", ` + metadata},
		"an error around it": {issuer, fmt.Errorf("asking: %w", ErrInvalid), 401,
			`Bearer error="invalid_token", ` + metadata},
		"a token for nothing": {issuer, &ScopeError{ScopeRun, ofIssuer("usual")}, 403,
			`Bearer error="insufficient_scope", scope="use", ` + metadata},
		"more than it has": {issuer,
			&ScopeError{ScopeAudit, ofIssuer("small", ScopeRun)}, 403,
			`Bearer error="insufficient_scope", scope="look use", ` + metadata},
		"more, and the profile is kept": {issuer,
			&ScopeError{ScopeAgents, ofIssuer("wide", ScopeRun, ScopeAudit)}, 403,
			`Bearer error="insufficient_scope", scope="register use.wide look", ` + metadata},
		"what no scope gives": {issuer,
			&ScopeError{ScopeSlash, ofIssuer("small", ScopeRun)}, 403,
			`Bearer error="insufficient_scope", ` + metadata},
		"scopes that contradict each other": {issuer, ErrProfiles, 403,
			`Bearer error="insufficient_scope", ` + metadata},
		"a token of Airlock's own": {issuer, &ScopeError{ScopeAudit, own}, 403,
			`Bearer error="insufficient_scope", scope="audit", ` + metadata},
		"no issuer, no token": {&Authenticator{}, ErrNone, 401, `Bearer`},
		"no issuer, more than a token of Airlock's own allows": {&Authenticator{}, &ScopeError{ScopeAudit, own}, 403,
			`Bearer error="insufficient_scope", scope="audit"`},
	} {
		refusal, ok := test.by.Refuse(t.Context(), test.err, "/mcp")
		w := httptest.NewRecorder()
		refusal.Write(w)
		if got := w.Header().Get("WWW-Authenticate"); !ok || w.Code != test.status || got != test.challenge {
			t.Errorf("%s: got %t, %d, %s\nwant %d, %s", name, ok, w.Code, got, test.status, test.challenge)
		}
		var body struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Code == "" ||
			body.Error.Message == "" {
			t.Errorf("%s: got the body %s, %v", name, w.Body, err)
		}
	}
	if _, ok := issuer.Refuse(t.Context(), ErrIssuer, "/mcp"); ok {
		t.Error("the issuer is away: got an answer about the token, want none")
	}
}

// Each MCP endpoint is a separate resource, and its metadata are at the path that a client derives
// from the URL of the endpoint (RFC 9728, section 3.1).
func TestMetadataOfPaths(t *testing.T) {
	for _, test := range []struct{ audience, path, at, resource string }{
		{"https://a.example/mcp", "/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp",
			"https://a.example/mcp"},
		{"https://a.example/mcp", "/kernel/mcp", "https://a.example/.well-known/oauth-protected-resource/kernel/mcp",
			"https://a.example/kernel/mcp"},
		{"https://a.example/mcp", "/v1/agents", "https://a.example/.well-known/oauth-protected-resource/mcp",
			"https://a.example/mcp"},
		{"https://a.example/behind/mcp", "/mcp", "https://a.example/.well-known/oauth-protected-resource/behind/mcp",
			"https://a.example/behind/mcp"},
		{"https://a.example/behind/mcp", "/kernel/mcp",
			"https://a.example/.well-known/oauth-protected-resource/behind/kernel/mcp",
			"https://a.example/behind/kernel/mcp"},
		{"https://a.example", "/kernel/mcp", "https://a.example/.well-known/oauth-protected-resource",
			"https://a.example"},
		{"https://a.example/", "/mcp", "https://a.example/.well-known/oauth-protected-resource", "https://a.example/"},
	} {
		issuer := NewIssuer(config.Auth{Issuer: "https://login.example", Audience: test.audience}, nil, nil)
		if got, resource := issuer.MetadataURL(test.path), issuer.Metadata(test.path).Resource; got != test.at ||
			resource != test.resource {
			t.Errorf("%s, %s: got %s of %s\nwant %s of %s", test.audience, test.path, got, resource, test.at,
				test.resource)
		}
		w := httptest.NewRecorder()
		issuer.Describe(w, httptest.NewRequest(http.MethodGet, test.at, nil), "/mcp", "/kernel/mcp")
		var told Metadata
		if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || told.Resource != test.resource ||
			w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %s, %v, want the metadata of %s", test.at, w.Body, err, test.resource)
		}
	}
}
