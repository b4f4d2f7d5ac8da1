package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// signInServer is an issuer at which people sign in, with a key.
type signInServer struct {
	*authServer
	key  *ecdsa.PrivateKey
	auth config.Auth
	now  time.Time
}

func newSignInServer(t *testing.T) *signInServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signInServer{authServer: newAuthServer(t), key: key, now: time.Unix(1_800_000_000, 0)}
	s.publish("k", "ES256", key.Public())
	s.auth = config.Auth{Issuer: s.URL, Audience: ours, Types: []string{"at+jwt", "JWT"}, GroupsClaim: "groups",
		Claims: []string{"dept"}, SignIn: config.SignIn{ClientID: "console",
			Groups: []config.Scope{{Name: "ops", Rights: []string{"admin"}}, {Name: "staff", Rights: []string{"run",
				"approve"}, Profile: "small"}},
			Everyone: config.Scope{Rights: []string{"run"}, Profile: "least"}}}
	return s
}

func (s *signInServer) issuer() *Issuer {
	return NewIssuer(s.auth, nil, func() time.Time { return s.now })
}

// token makes an ID token with the claims of a good one, changed.
func (s *signInServer) token(t *testing.T, header, change map[string]any) secret.Value {
	t.Helper()
	claims := map[string]any{"iss": s.URL, "aud": "console", "sub": "ann", "nonce": "n-1", "iat": s.now.Unix(),
		"exp": s.now.Add(time.Minute).Unix()}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	all := map[string]any{"kid": "k"}
	maps.Copy(all, header)
	return secret.New(sign(t, jose.ES256, s.key, all, claims))
}

// An ID token counts only in the sign-in that it was issued for (issue 27; OpenID Connect Core 1.0, section 3.1.3.7).
func TestIDTokens(t *testing.T) {
	s := newSignInServer(t)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		header, change map[string]any
		want           Reason // empty: it counts
	}{
		"good":                        {nil, nil, ""},
		"good, with a type":           {map[string]any{"typ": "JWT"}, nil, ""},
		"good, with a party":          {nil, map[string]any{"azp": "console"}, ""},
		"good, with two audiences":    {nil, map[string]any{"aud": []string{"console", "x"}, "azp": "console"}, ""},
		"an access token":             {map[string]any{"typ": "at+jwt"}, nil, WrongType},
		"an access token for us":      {nil, map[string]any{"aud": ours}, WrongAudience},
		"of another client":           {nil, map[string]any{"aud": "other"}, WrongAudience},
		"another party":               {nil, map[string]any{"azp": "other"}, WrongAudience},
		"two audiences, no party":     {nil, map[string]any{"aud": []string{"console", "x"}}, WrongAudience},
		"no audience":                 {nil, map[string]any{"aud": nil}, WrongAudience},
		"of another issuer":           {nil, map[string]any{"iss": "https://evil.example"}, WrongIssuer},
		"another nonce":               {nil, map[string]any{"nonce": "n-2"}, BadClaims},
		"no nonce":                    {nil, map[string]any{"nonce": nil}, BadClaims},
		"no subject":                  {nil, map[string]any{"sub": nil}, BadClaims},
		"a subject with a line break": {nil, map[string]any{"sub": "ann\nroot"}, BadClaims},
		"expired":                     {nil, map[string]any{"exp": s.now.Add(-2 * time.Minute).Unix()}, Expired},
		"without an end":              {nil, map[string]any{"exp": nil}, BadClaims},
		"valid for too long":          {nil, map[string]any{"exp": s.now.Add(48 * time.Hour).Unix()}, BadClaims},
		"of the future":               {nil, map[string]any{"iat": s.now.Add(time.Hour).Unix()}, NotYetValid},
		"without a beginning":         {nil, map[string]any{"iat": nil}, BadClaims},
		"an unknown key":              {map[string]any{"kid": "other"}, nil, UnknownKey},
		"groups that cannot be read":  {nil, map[string]any{"groups": []any{"ops", 1}}, BadClaims},
		"groups that are an object":   {nil, map[string]any{"groups": map[string]any{"ops": true}}, BadClaims},
		"groups that are elsewhere": {nil, map[string]any{"_claim_names": map[string]any{"groups": "src1"}},
			BadClaims},
		"an empty group":      {nil, map[string]any{"groups": []any{""}}, BadClaims},
		"one group ten times": {nil, map[string]any{"groups": slices.Repeat([]string{"g"}, 10)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.issuer().Person(t.Context(), s.token(t, test.header, test.change), "n-1", nil)
			if got, _ := ReasonOf(err); got != test.want || (err == nil) != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
	forged := secret.New(sign(t, jose.ES256, other, map[string]any{"kid": "k"}, map[string]any{"iss": s.URL,
		"aud": "console",
		"sub": "ann", "nonce": "n-1", "iat": s.now.Unix(), "exp": s.now.Add(time.Minute).Unix()}))
	if _, err := s.issuer().Person(t.Context(), forged, "n-1", nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("a forged token: got %v, want %v", err, ErrInvalid)
	}
	if _, err := s.issuer().Person(t.Context(), s.token(t, nil, map[string]any{"nonce": ""}), "",
		nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("a sign-in without a nonce: got %v, want %v", err, ErrInvalid)
	}
	if _, err := s.issuer().Authenticate(t.Context(), s.token(t, map[string]any{"typ": "JWT"}, nil),
		"/mcp"); !errors.Is(err, ErrInvalid) {
		t.Errorf("an ID token at /mcp: got %v, want %v", err, ErrInvalid)
	}
}

// The answer of the userinfo endpoint counts for the same subject, and does not replace what is signed (issue 27).
func TestUserInfo(t *testing.T) {
	s := newSignInServer(t)
	for name, test := range map[string]struct {
		claims map[string]any
		info   string
		want   []string // groups; nil: refused
	}{
		"groups": {nil, `{"sub":"ann","groups":["ops"]}`, []string{"ops"}},
		"signed ones": {map[string]any{"groups": []string{"staff"}}, `{"sub":"ann","groups":["ops"]}`,
			[]string{"staff"}},
		"another subject": {nil, `{"sub":"bob","groups":["ops"]}`, nil},
		"no subject":      {nil, `{"groups":["ops"]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var info map[string]json.RawMessage
			if err := json.Unmarshal([]byte(test.info), &info); err != nil {
				t.Fatal(err)
			}
			p, err := s.issuer().Person(t.Context(), s.token(t, nil, test.claims), "n-1", info)
			if (err == nil) != (test.want != nil) || !slices.Equal(p.facts.Groups, test.want) {
				t.Errorf("got %v, %v, want %v", p.facts, err, test.want)
			}
		})
	}
}

// The rights of a person follow from the groups and the configuration in force (issue 27).
func TestRightsOfAPerson(t *testing.T) {
	s := newSignInServer(t)
	a := &Authenticator{Roles: func(who caller.Caller) []string {
		return RolesOf([]config.Role{{Name: "finance", Groups: []string{"staff"}}, {Name: "legal",
			Principals: []string{s.URL + "#bob"}}}, who)
	}}
	issuer := s.issuer()
	a.Issuer = func() *Issuer { return issuer }
	for name, test := range map[string]struct {
		groups  []string
		scopes  []string
		profile string
		roles   []string
	}{
		"nobody special": {nil, []string{"run"}, "least", nil},
		"staff":          {[]string{"staff"}, []string{"approve", "run"}, "small", []string{"finance"}},
		"ops":            {[]string{"ops"}, []string{"admin", "run", "runs:all"}, "", nil},
		"both": {[]string{"ops", "staff"}, []string{"admin", "approve", "run", "runs:all"}, "small",
			[]string{"finance"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := issuer.Person(t.Context(), s.token(t, nil, map[string]any{"groups": test.groups, "dept": "it"}),
				"n-1", nil)
			if err != nil {
				t.Fatal(err)
			}
			who, err := a.Person(t.Context(), p)
			if err != nil || !slices.Equal(who.Scopes, test.scopes) || who.Profile != test.profile ||
				!slices.Equal(who.Roles, test.roles) || who.Name() != s.URL+"#ann" ||
				string(who.Facts.Claims["dept"]) != `"it"` {
				t.Errorf("got %+v, %v", who, err)
			}
		})
	}
	p, err := issuer.Person(t.Context(), s.token(t, nil, map[string]any{"groups": []string{"staff"}}), "n-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	began := s.now
	for name, change := range map[string]func(){
		"after its time":          func() { s.now = began.Add(personTime) },
		"another client":          func() { s.auth.SignIn.ClientID = "other" },
		"another claim of groups": func() { s.auth.GroupsClaim = "roles" },
		"another issuer":          func() { s.auth.Issuer = "http://127.0.0.1:1" },
		"no issuer":               func() { issuer = nil },
		"no rights": func() {
			s.auth.SignIn.Groups, s.auth.SignIn.Everyone = nil, config.Scope{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			was := s.auth
			change()
			if issuer != nil {
				issuer = s.issuer()
			}
			if who, err := a.Person(t.Context(), p); err == nil {
				t.Errorf("got %+v, want an error", who)
			}
			s.auth, s.now = was, began
			issuer = s.issuer()
		})
	}
}

// An access token states groups and claims for policies, and they give no rights. Agents have the facts of their
// registrar, and no role (issue 27).
func TestFactsOfTokens(t *testing.T) {
	s := newSignInServer(t)
	claims := map[string]any{"aud": ours, "groups": []string{"staff", "ops", "ops"}, "dept": "it", "scope": "run",
		"client_id": "host",
		"nonce":     nil}
	who, err := s.issuer().Authenticate(t.Context(), s.token(t, map[string]any{"typ": "at+jwt"}, claims), "/mcp")
	if err != nil || !slices.Equal(who.Facts.Groups, []string{"ops", "staff"}) ||
		string(who.Facts.Claims["dept"]) != `"it"` ||
		!slices.Equal(who.Scopes, []string{"run"}) {
		t.Errorf("got %+v, %v", who, err)
	}
	fewer := maps.Clone(claims)
	fewer["groups"] = []string{"staff"}
	less, err := s.issuer().Authenticate(t.Context(), s.token(t, map[string]any{"typ": "at+jwt"}, fewer), "/mcp")
	if err != nil || less.Credentials[0].ID == who.Credentials[0].ID {
		t.Errorf("got the credential %v, %v, want another than that of the token with more groups", less.Credentials,
			err)
	}
	claims["groups"] = map[string]any{"staff": 1}
	if _, err := s.issuer().Authenticate(t.Context(), s.token(t, map[string]any{"typ": "at+jwt"}, claims),
		"/mcp"); !errors.Is(err, ErrInvalid) {
		t.Errorf("groups that cannot be read: got %v, want %v", err, ErrInvalid)
	}
	agent := caller.Caller{Principal: "agent_1", Kind: caller.Agent, Facts: who.Facts}
	if roles := RolesOf([]config.Role{{Name: "finance", Groups: []string{"staff"}, Principals: []string{"agent_1"}}},
		agent); roles != nil {
		t.Errorf("an agent has the roles %v, want none", roles)
	}
}

// A token of Airlock keeps its groups and claims (issue 27).
func TestFactsOfOwnTokens(t *testing.T) {
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Schema, SchemaUses,
		SchemaCreators, SchemaFacts, SchemaSignOuts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tokens := NewTokens(db, nil)
	facts := FactsOf([]string{"b", "a", "b"}, map[string]string{"dept": `"it"`})
	made, value, err := tokens.Create(t.Context(), Grant{Name: "a", Scopes: []string{ScopeRun}, Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	who, err := tokens.Authenticate(t.Context(), value)
	if err != nil || who.Facts.Key() != facts.Key() || !slices.Equal(who.Facts.Groups, []string{"a", "b"}) {
		t.Errorf("got %+v, %v, want the facts", who, err)
	}
	if list, err := tokens.List(t.Context()); err != nil || len(list) != 1 || list[0].Facts.Key() != made.Facts.Key() {
		t.Errorf("got %+v, %v", list, err)
	}
	for name, bad := range map[string]caller.Facts{
		"an empty group":       {Groups: []string{""}},
		"a line break":         {Groups: []string{"a\nb"}},
		"too many groups":      {Groups: make([]string, maxGroups+1)},
		"a claim with no name": FactsOf(nil, map[string]string{"": "x"}),
		"a long claim":         FactsOf(nil, map[string]string{"x": string(make([]byte, maxFact))}),
	} {
		if _, _, err := tokens.Create(t.Context(), Grant{Name: "a", Scopes: []string{ScopeRun},
			Facts: bad}); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// Issue 23: acts of a person, such as a token that was made in the console, stayed in force after the rights of the
// person's group had been removed.
func TestWhatAPersonBeganEndsWithTheRights(t *testing.T) {
	s := newSignInServer(t)
	issuer := s.issuer()
	p, err := issuer.Person(t.Context(), s.token(t, nil, map[string]any{"groups": []string{"ops"}}), "n-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	who, err := issuer.callerOf(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*config.Auth)
		ends   bool
	}{
		"nothing":      {func(*config.Auth) {}, false},
		"another role": {func(c *config.Auth) { c.Roles = []config.Role{{Name: "new"}} }, false},
		"a new group": {func(c *config.Auth) {
			c.SignIn.Groups = append(c.SignIn.Groups, config.Scope{Name: "x", Rights: []string{"admin"}})
		}, false},
		"more rights of its group": {func(c *config.Auth) {
			c.SignIn.Groups[0].Rights = append(c.SignIn.Groups[0].Rights, "slash")
		}, false},
		"its group, but not a scope with that name": {func(c *config.Auth) {
			c.Scopes, c.SignIn.Groups = c.SignIn.Groups[:1], c.SignIn.Groups[1:]
		}, true},
		"rights of another group": {func(c *config.Auth) { c.SignIn.Groups[1].Rights = nil }, false},
		"a type of access tokens": {func(c *config.Auth) { c.Types = nil }, false},
		"a group with a profile": {func(c *config.Auth) {
			c.SignIn.Groups = append(c.SignIn.Groups, config.Scope{Name: "x", Profile: "small"})
		}, true},
		"its group":             {func(c *config.Auth) { c.SignIn.Groups = c.SignIn.Groups[1:] }, true},
		"rights of its group":   {func(c *config.Auth) { c.SignIn.Groups[0].Rights = []string{"run"} }, true},
		"the right of everyone": {func(c *config.Auth) { c.SignIn.Everyone.Rights = nil }, true},
		"the client":            {func(c *config.Auth) { c.SignIn.ClientID = "other" }, true},
	} {
		changed := s.auth
		changed.SignIn.Groups = nil
		for _, group := range s.auth.SignIn.Groups {
			group.Rights = slices.Clone(group.Rights)
			changed.SignIn.Groups = append(changed.SignIn.Groups, group)
		}
		test.change(&changed)
		now := NewIssuer(changed, nil, nil) // as after a restart: it has read no keys
		m, ok := parseMark(who.Credentials[0].Mark)
		if got := now.accepts(t.Context(), m); !ok || got == test.ends {
			t.Errorf("%s: got %t, want that it ends: %t", name, got, test.ends)
		}
	}
}

// issue 28: another node of a cluster reads the same person.
func TestAPersonIsStored(t *testing.T) {
	s := newSignInServer(t)
	issuer := s.issuer()
	p, err := issuer.Person(t.Context(), s.token(t, nil, map[string]any{"groups": []string{"ops"}}), "n-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var read Person
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	want, err := issuer.callerOf(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := issuer.callerOf(t.Context(), read); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}
