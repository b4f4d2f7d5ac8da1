package signin

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// forged returns a token with the given header, the changed claims of a real token, and the
// signature that sign returns.
func forged(t *testing.T, real string, header map[string]any, change map[string]any,
	sign func(signed string) []byte) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(real, ".")[1])
	claims := map[string]any{}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		t.Fatalf("the provider's token is %s, %v", real, err)
	}
	maps.Copy(claims, change)
	var parts []string
	for _, part := range []map[string]any{header, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	signed := strings.Join(parts, ".")
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign(signed))
}

// publicKey returns the provider's published key: its ID, and the encodings that a careless
// verifier would use as an HMAC secret.
func (p *provider) publicKey(t *testing.T) (id string, encodings map[string][]byte) {
	t.Helper()
	response, err := http.Get(p.Issuer + "/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var set struct {
		Keys []struct{ KID, N, E string }
	}
	if err := json.NewDecoder(response.Body).Decode(&set); err != nil || len(set.Keys) == 0 {
		t.Fatalf("the keys: %v, %v", set, err)
	}
	n, err1 := base64.RawURLEncoding.DecodeString(set.Keys[0].N)
	e, err2 := base64.RawURLEncoding.DecodeString(set.Keys[0].E)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: new(big.Int).SetBytes(n),
		E: int(new(big.Int).SetBytes(e).Int64())})
	if err != nil {
		t.Fatal(err)
	}
	return set.Keys[0].KID, map[string][]byte{"PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		"DER": der, "modulus": n}
}

// C-083, C-086: at every path a token is accepted only if the provider issued it, for this
// audience, and it is valid now.
func TestTokensThatDoNotCount(t *testing.T) {
	testenv.Sandbox(t)
	s := startService(t, "verify")
	p, resource := s.provider, s.url+"/mcp"
	const scopes = "openid offline_access airlock.use airlock.manage"
	good := p.signIn(t, firstUser, "laptop", resource, scopes)
	for _, path := range paths {
		if got := s.ask(t, path, good.Access); got.status != http.StatusOK {
			t.Fatalf("%s: a good token: got %+v", path, got)
		}
	}
	other := startProvider(t, "-jwt", "-scopes", scopesOfService, "-client", "laptop")
	none := func(string) []byte { return nil }
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	withOwn := func(signed string) []byte {
		sum := sha256.Sum256([]byte(signed))
		signature, err := rsa.SignPKCS1v15(rand.Reader, own, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	id, encodings := p.publicKey(t)
	at := func(clock, lifetime string) string {
		p.Obey(t, "clock "+clock)
		p.Obey(t, "lifetime "+lifetime)
		defer p.Obey(t, "clock 0s")
		defer p.Obey(t, "lifetime 5m")
		return p.signIn(t, firstUser, "laptop", resource, scopes).Access
	}
	rs := map[string]any{"alg": "RS256", "typ": "JWT", "kid": id}
	parts := strings.Split(good.Access, ".")
	bad := map[string]string{
		"for another service": p.signIn(
			t, firstUser, "laptop", "https://other.example/mcp", scopes).Access,
		"for no service": p.signIn(t, firstUser, "laptop", "", scopes).Access,
		"for a name that begins like this": p.signIn(
			t, firstUser, "laptop", resource+".evil.example", scopes).Access,
		"of another provider": other.signIn(t, firstUser, "laptop", resource, scopes).Access,
		"expired":             at("0s", "-2m"),
		"from the future":     at("5m", "5m"),
		"valid for too long":  at("0s", "48h"),
		"a refresh token":     good.Refresh,
		"without a signature": parts[0] + "." + parts[1] + ".",
		"with the signature of another": parts[0] + "." + parts[1] + "." +
			strings.Split(other.signIn(t, firstUser, "laptop", resource, scopes).Access, ".")[2],
		"alg none": forged(
			t, good.Access, map[string]any{"alg": "none", "typ": "JWT", "kid": id}, nil, none),
		"alg NonE": forged(
			t, good.Access, map[string]any{"alg": "NonE", "typ": "JWT"}, nil, none),
		"a key of one's own under its ID": forged(
			t, good.Access, rs, map[string]any{"sub": secondSubject}, withOwn),
		"the other's issuer, the key of neither": forged(
			t, good.Access, rs, map[string]any{"iss": other.Issuer}, withOwn),
		"a key that is in the token": forged(t, good.Access,
			map[string]any{"alg": "RS256", "typ": "JWT", "jwk": map[string]any{
				"kty": "RSA", "n": base64.RawURLEncoding.EncodeToString(own.N.Bytes()), "e": "AQAB"}}, nil, withOwn),
		"a key that the token points to": forged(t, good.Access,
			map[string]any{"alg": "RS256", "typ": "JWT", "kid": id, "jku": other.Issuer + "/keys"}, nil, withOwn),
	}
	for encoding, secret := range encodings {
		bad["HMAC with the public key as "+encoding] = forged(
			t, good.Access, map[string]any{"alg": "HS256", "typ": "JWT", "kid": id},
			map[string]any{"sub": secondSubject}, func(signed string) []byte {
				mac := hmac.New(sha256.New, secret)
				mac.Write([]byte(signed))
				return mac.Sum(nil)
			})
	}
	for name, token := range bad {
		for _, path := range paths {
			got := s.ask(t, path, token)
			if got.status != http.StatusUnauthorized || got.code != "unauthorized" ||
				!strings.Contains(got.challenge, `error="invalid_token"`) ||
				!strings.Contains(got.challenge, "resource_metadata=") {
				t.Errorf("%s, %s: got %+v, want 401 with invalid_token", path, name, got)
			}
			if token != "" && strings.Contains(got.body+got.challenge, token) {
				t.Errorf("%s, %s: the answer repeats the token", path, name)
			}
		}
	}
	for _, path := range paths { // an ID token identifies a person and grants no right
		if got := s.ask(t, path, good.ID); got.status != http.StatusUnauthorized && got.status != http.StatusForbidden {
			t.Errorf("%s, an ID token: got %+v, want a refusal", path, got)
		}
	}
	for name, token := range map[string]string{"half a minute ahead": at("30s", "5m"),
		"half a minute behind": at("-30s", "5m"), "expired half a minute ago": at("0s", "-10s")} {
		if got := s.ask(t, "/mcp", token); got.status != http.StatusOK {
			t.Errorf("a clock that is %s: got %+v", name, got)
		}
	}
	// A token for the kernel's face alone is one for no other.
	narrow := p.signIn(t, firstUser, "laptop", s.url+"/kernel/mcp", scopes).Access
	for path, want := range map[string]int{"/kernel/mcp": http.StatusOK, "/mcp": http.StatusUnauthorized,
		"/gateway/mcp": http.StatusUnauthorized, "/v1/agents": http.StatusUnauthorized} {
		if got := s.ask(t, path, narrow); got.status != want {
			t.Errorf("%s with a token for /kernel/mcp: got %+v, want %d", path, got, want)
		}
	}
}

// C-086: new keys of the provider are accepted without a restart, and tokens signed by a
// removed key are refused.
func TestKeysOfTheProviderRotate(t *testing.T) {
	testenv.Sandbox(t)
	s := startService(t)
	fresh := func() string { return s.provider.signIn(t, firstUser, "laptop", s.url+"/mcp", "airlock.use").Access }
	first := fresh()
	s.until(t, first, http.StatusOK)
	s.provider.Obey(t, "rotate")
	second := fresh()
	s.until(t, second, http.StatusOK)
	if got := s.ask(t, "/mcp", first); got.status != http.StatusOK {
		t.Errorf("the old key is still published: got %+v", got)
	}
	s.provider.Obey(t, "rotate")
	s.provider.Obey(t, "retire")
	s.until(t, fresh(), http.StatusOK) // now the keys were read again
	for name, token := range map[string]string{"first": first, "second": second} {
		if got := s.ask(t, "/mcp", token); got.status != http.StatusUnauthorized {
			t.Errorf("a token of the %s key, which was revoked: got %+v", name, got)
		}
	}
}

// until shows a token until it is answered with a status: keys are asked for at most
// once in ten seconds.
func (s *service) until(t *testing.T, token string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		got := s.ask(t, "/mcp", token)
		if got.status == status {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("got %+v, want %d\n%s", got, status, s.said)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// C-086: a token that was renewed is the same caller, and goes on with what there is;
// another person and another client are other callers.
func TestRenewedTokensGoOn(t *testing.T) {
	testenv.Sandbox(t)
	s := startService(t)
	sign := func(user, client string) tokens {
		return s.provider.signIn(t, user, client, s.url+"/mcp", "openid offline_access airlock.use")
	}
	host := func(token string) *mcp.ClientSession {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: s.url + "/mcp",
				HTTPClient: testenv.Bearer(token)},
			&mcp.ClientSessionOptions{ProtocolVersion: "2026-07-28"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { session.Close() })
		return session
	}
	say := func(session *mcp.ClientSession, tool string, arguments map[string]any) (string, string) {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(result)
		var whole struct {
			StructuredContent struct {
				Run string `json:"run_id"`
			}
		}
		if err != nil || json.Unmarshal(raw, &whole) != nil {
			t.Fatalf("%s, %v", raw, err)
		}
		return whole.StructuredContent.Run, string(raw)
	}
	held := sign(firstUser, "laptop")
	run, raw := say(host(held.Access), "run_code",
		map[string]any{"language": "python", "code": "import time\ntime.sleep(600)", "background": true})
	if run == "" {
		t.Fatalf("got %s", raw)
	}
	renewed := s.provider.token(t, url.Values{"grant_type": {"refresh_token"}, "client_id": {"laptop"},
		"refresh_token": {held.Refresh}})
	if renewed.Access == held.Access {
		t.Fatal("the provider renews nothing")
	}
	const absent = "There is no such run"
	for name, token := range map[string]string{"another person": sign(secondUser, "laptop").Access,
		"another client of the same person": sign(firstUser, "phone").Access} {
		if _, raw := say(host(token), "get_run", map[string]any{"run_id": run}); !strings.Contains(raw, absent) {
			t.Errorf("%s: got %s", name, raw)
		}
	}
	if _, raw := say(host(renewed.Access), "get_run", map[string]any{"run_id": run}); strings.Contains(raw, absent) ||
		!strings.Contains(raw, run) {
		t.Errorf("with the renewed token: got %s", raw)
	}
	if _, raw := say(host(renewed.Access), "cancel_run", map[string]any{"run_id": run}); strings.Contains(
		raw, `"isError":true`) {
		t.Errorf("cancelling with the renewed token: got %s", raw)
	}
}
