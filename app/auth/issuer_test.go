package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// authServer is an authorization server, as far as a resource server needs it.
type authServer struct {
	*httptest.Server
	mu       sync.Mutex
	keys     []jose.JSONWebKey
	answered int      // requests for keys
	away     bool     // answers with an error
	beside   []string // keys as JSON, before the others
	issuer   string
}

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	s := &authServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]string{"issuer": s.issuer, "jwks_uri": s.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answered++
		if s.away {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		set := struct {
			Keys []json.RawMessage `json:"keys"`
		}{Keys: []json.RawMessage{}}
		for _, text := range s.beside {
			set.Keys = append(set.Keys, json.RawMessage(text))
		}
		for _, key := range s.keys {
			text, _ := key.MarshalJSON()
			set.Keys = append(set.Keys, text)
		}
		json.NewEncoder(w).Encode(set)
	})
	s.Server = httptest.NewServer(mux)
	s.issuer = s.URL
	t.Cleanup(s.Close)
	return s
}

// publish adds a key to the published keys.
func (s *authServer) publish(id, algorithm string, public any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, jose.JSONWebKey{Key: public, KeyID: id, Algorithm: algorithm, Use: "sig"})
}

func (s *authServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}

// sign makes a token.
func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, header map[string]any,
	claims map[string]any) string {
	t.Helper()
	opts := &jose.SignerOptions{}
	for name, value := range header {
		opts.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

const ours = "https://airlock.example.com/mcp"

// A token is valid only if it is from the issuer, for our audience, valid now, and signed with one
// of the issuer's keys and an algorithm that only the issuer can use.
func TestTokensOfAnIssuer(t *testing.T) {
	server := newAuthServer(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	server.publish("rsa", "RS256", key.Public())
	server.publish("ec", "", curve.Public())
	server.publish("ed", "", edPublic)
	now := time.Unix(1_800_000_000, 0)
	issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil,
		func() time.Time { return now })
	publicPEM, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	confused := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicPEM})

	good := func(change map[string]any) map[string]any {
		claims := map[string]any{
			"iss": server.URL, "aud": ours, "sub": "ann", "client_id": "laptop", "scope": "openid run", "jti": "1",
			"iat": now.Unix() - 10, "nbf": now.Unix() - 10, "exp": now.Unix() + 300,
		}
		for name, value := range change {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		}
		return claims
	}
	header := map[string]any{"kid": "rsa", "typ": "at+jwt"}
	rs := func(change map[string]any) string { return sign(t, jose.RS256, key, header, good(change)) }
	withHeader := func(more map[string]any) string {
		all := map[string]any{"kid": "rsa", "typ": "at+jwt"}
		for name, value := range more {
			if all[name] = value; value == nil {
				delete(all, name)
			}
		}
		return sign(t, jose.RS256, key, all, good(nil))
	}
	bare := func(header, claims string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(claims)) + "."
	}
	everything, err := json.Marshal(good(nil))
	if err != nil {
		t.Fatal(err)
	}
	tampered := rs(nil)
	parts := strings.Split(tampered, ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(everything), `"ann"`, `"bob"`, 1)))

	for name, test := range map[string]struct {
		token   string
		refused Reason // empty: it is valid
	}{
		"as it should be":              {rs(nil), ""},
		"application/ before the type": {withHeader(map[string]any{"typ": "application/at+jwt"}), ""},
		"several audiences": {rs(
			map[string]any{"aud": []string{"https://other.example", ours}}), ""},
		"an elliptic curve": {sign(
			t, jose.ES256, curve, map[string]any{"kid": "ec", "typ": "at+jwt"}, good(nil)), ""},
		"an Edwards curve": {sign(
			t, jose.EdDSA, ed, map[string]any{"kid": "ed", "typ": "at+jwt"}, good(nil)), ""},
		"no key ID":               {withHeader(map[string]any{"kid": nil}), ""},
		"expired within the skew": {rs(map[string]any{"exp": now.Unix() - 30}), ""},
		"expired":                 {rs(map[string]any{"exp": now.Unix() - 61}), Expired},
		"no end":                  {rs(map[string]any{"exp": nil}), BadClaims},
		"an end that is a text":   {rs(map[string]any{"exp": "tomorrow"}), BadClaims},
		"valid for a month":       {rs(map[string]any{"exp": now.Unix() + 30*24*3600}), BadClaims},
		"valid for a month, without a beginning": {rs(
			map[string]any{"exp": now.Unix() + 30*24*3600, "iat": nil, "nbf": nil}), BadClaims},
		"valid for a month from tomorrow": {rs(
			map[string]any{"exp": now.Unix() + 30*24*3600, "iat": now.Unix() + 29*24*3600, "nbf": nil}), NotYetValid},
		"valid for a month, as its other claim says": {rs(
			map[string]any{"exp": now.Unix() + 3600, "iat": nil, "nbf": now.Unix() - 30*24*3600}), BadClaims},
		"valid for an hour, without a beginning": {rs(map[string]any{"exp": now.Unix() + 3600, "iat": nil, "nbf": nil}),
			""},
		"an end that no integer can hold": {rs(map[string]any{"exp": json.Number("1e300"), "iat": nil, "nbf": nil}),
			BadClaims},
		"the last end": {rs(
			map[string]any{"exp": json.Number("9223372036854774784"), "iat": nil, "nbf": nil}), BadClaims},
		"an end after all years": {rs(map[string]any{"exp": json.Number("1e16"), "iat": nil, "nbf": nil}), BadClaims},
		"issued in 1970":         {rs(map[string]any{"iat": 0}), BadClaims},
		"issued before all time": {rs(map[string]any{"iat": json.Number("-1e300"), "nbf": nil}), BadClaims},
		"not before tomorrow":    {rs(map[string]any{"nbf": now.Unix() + 24*3600}), NotYetValid},
		"issued tomorrow": {rs(
			map[string]any{"iat": now.Unix() + 24*3600, "exp": now.Unix() + 25*3600}), NotYetValid},
		"another audience":                   {rs(map[string]any{"aud": "https://other.example"}), WrongAudience},
		"an audience that begins like us":    {rs(map[string]any{"aud": ours + "/more"}), WrongAudience},
		"no audience":                        {rs(map[string]any{"aud": nil}), WrongAudience},
		"another issuer":                     {rs(map[string]any{"iss": "https://evil.example"}), WrongIssuer},
		"the issuer with a slash":            {rs(map[string]any{"iss": server.URL + "/"}), WrongIssuer},
		"no issuer":                          {rs(map[string]any{"iss": nil}), WrongIssuer},
		"no subject":                         {rs(map[string]any{"sub": nil}), BadClaims},
		"a subject with a line break":        {rs(map[string]any{"sub": "ann\nbob"}), BadClaims},
		"a huge subject":                     {rs(map[string]any{"sub": strings.Repeat("a", maxSubject+1)}), BadClaims},
		"an ID token":                        {withHeader(map[string]any{"typ": "JWT"}), WrongType},
		"no type":                            {withHeader(map[string]any{"typ": nil}), WrongType},
		"a logout token":                     {withHeader(map[string]any{"typ": "logout+jwt"}), WrongType},
		"a header that has to be understood": {withHeader(map[string]any{"crit": []string{"x"}, "x": 1}), BadSignature},
		"another's key":                      {sign(t, jose.RS256, other, header, good(nil)), BadSignature},
		"a key of its own in the header": {sign(
			t, jose.RS256, other, map[string]any{"kid": "rsa", "typ": "at+jwt",
				"jwk": jose.JSONWebKey{Key: other.Public()}}, good(nil)), BadSignature},
		"keys at an address of its own": {sign(
			t, jose.RS256, other, map[string]any{"kid": "rsa", "typ": "at+jwt", "jku": "https://evil.example/keys"},
			good(nil)), BadSignature},
		"another algorithm than the key's": {sign(t, jose.PS256, key, header, good(nil)), UnknownKey},
		"the public key as a secret":       {sign(t, jose.HS256, confused, header, good(nil)), WrongAlgorithm},
		"alg none": {bare(`{"alg":"none","kid":"rsa","typ":"at+jwt"}`, string(everything)),
			WrongAlgorithm},
		"alg None": {bare(`{"alg":"None","kid":"rsa","typ":"at+jwt"}`, string(everything)),
			WrongAlgorithm},
		"no signature":            {parts[0] + "." + strings.Split(tampered, ".")[1] + ".", BadSignature},
		"claims of another":       {strings.Join(parts, "."), BadSignature},
		"no JWT":                  {"a.b.c", Malformed},
		"a key that there is not": {withHeader(map[string]any{"kid": "none"}), UnknownKey},
		"another issuer's key": {sign(t, jose.RS256, other, map[string]any{"kid": "none", "typ": "at+jwt"},
			good(map[string]any{"iss": "https://other.example"})), WrongIssuer},
		"huge": {rs(map[string]any{"more": strings.Repeat("x", maxJWT)}), Malformed},
	} {
		who, err := issuer.Authenticate(t.Context(), secret.New(test.token), "/mcp")
		if reason, _ := ReasonOf(err); reason != test.refused || (err == nil) != (test.refused == "") || err != nil &&
			(!errors.Is(err, ErrInvalid) || err.Error() != ErrInvalid.Error()) {
			t.Errorf("%s: got %+v, %v, %q, want %q", name, who, err, reason, test.refused)
		}
		if err == nil && (who.Principal != "ann" || who.Issuer != server.URL || who.Kind != caller.User ||
			!slices.Equal(who.Scopes, []string{ScopeRun}) || !who.Known()) {
			t.Errorf("%s: got %+v, want ann of the issuer, who may run", name, who)
		}
	}
}

func TestMetadataOfAnotherIssuerAreNotTaken(t *testing.T) {
	server := newAuthServer(t)
	server.issuer = "https://evil.example"
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	server.publish("one", "", key.Public())
	issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil, nil)
	_, err := issuer.Authenticate(t.Context(), secret.New(
		sign(t, jose.EdDSA, key, map[string]any{"kid": "one", "typ": "at+jwt"},
			map[string]any{"iss": server.URL, "aud": ours, "sub": "ann", "exp": time.Now().Add(time.Minute).Unix()})),
		"/mcp")
	if !errors.Is(err, ErrIssuer) {
		t.Errorf("got %v, want %v", err, ErrIssuer)
	}
}

// Scopes become rights and a profile; others give no rights.
func TestScopesOfAnIssuer(t *testing.T) {
	server := newAuthServer(t)
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	server.publish("one", "", key.Public())
	issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"},
		Scopes: []config.Scope{
			{Name: "airlock.use", Rights: []string{"run"}, Profile: "small"},
			{Name: "airlock.wide", Rights: []string{"run"}, Profile: "wide"},
			{Name: "airlock.all", Rights: []string{"admin"}},
		}}, nil, nil)
	for _, test := range []struct {
		name    string
		claims  map[string]any
		rights  []string
		profile string
		err     error
	}{
		{"one scope", map[string]any{"scope": "openid airlock.use"}, []string{"run"}, "small", nil},
		{"a list, as others write it", map[string]any{"scp": []any{"airlock.use", 7}}, []string{"run"}, "small", nil},
		{"a text, as others write it", map[string]any{"scp": "airlock.use"}, []string{"run"}, "small", nil},
		{"names of our own rights", map[string]any{"scope": "run admin"}, nil, "", nil},
		{"none", nil, nil, "", nil},
		{"the administrator", map[string]any{"scope": "airlock.all airlock.use"},
			[]string{"admin", "run", caller.ScopeAllRuns}, "small", nil},
		{"two profiles", map[string]any{"scope": "airlock.use airlock.wide"}, nil, "", ErrProfiles},
	} {
		claims := map[string]any{"iss": server.URL, "aud": ours, "sub": "ann",
			"exp": time.Now().Add(time.Minute).Unix()}
		maps.Copy(claims, test.claims)
		who, err := issuer.Authenticate(t.Context(),
			secret.New(sign(t, jose.EdDSA, key, map[string]any{"kid": "one", "typ": "at+jwt"}, claims)), "/mcp")
		if !errors.Is(err, test.err) || !slices.Equal(who.Scopes, test.rights) || who.Profile != test.profile {
			t.Errorf("%s: got %+v, %v, want %v, %q, %v", test.name, who, err, test.rights, test.profile, test.err)
		}
	}
}

// Issue 23: a client got one token that runs and another one that approves, and approved its own calls.
func TestTokensOfOneClientHaveOneHolder(t *testing.T) {
	server := newAuthServer(t)
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	server.publish("one", "", key.Public())
	issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil, nil)
	holder := func(subject, client, scope string) string {
		who, err := issuer.Authenticate(t.Context(), secret.New(sign(t, jose.EdDSA, key,
			map[string]any{"kid": "one", "typ": "at+jwt"}, map[string]any{"iss": server.URL, "aud": ours,
				"sub": subject, "client_id": client, "scope": scope,
				"exp": time.Now().Add(time.Minute).Unix()})), "/mcp")
		if err != nil {
			t.Fatal(err)
		}
		return holderOf(who.Credentials[0].ID)
	}
	runs := holder("ann", "host", "run")
	for name, test := range map[string]struct {
		holder string
		same   bool
	}{
		"another scope":      {holder("ann", "host", "approve"), true},
		"another client":     {holder("ann", "phone", "approve"), false},
		"another subject":    {holder("bob", "host", "run"), false},
		"a token of Airlock": {holderOf("tok_1"), false},
	} {
		if same := test.holder == runs; same != test.same {
			t.Errorf("%s: got %q, and %q for the token that runs", name, test.holder, runs)
		}
	}
}
