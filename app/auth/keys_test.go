package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// New keys are found when a token names one. Tokens that name unknown keys do not cause a
// request each.
func TestKeysRotate(t *testing.T) {
	server := newAuthServer(t)
	now := time.Unix(1_800_000_000, 0)
	var clock sync.Mutex
	wait := func(d time.Duration) {
		clock.Lock()
		defer clock.Unlock()
		now = now.Add(d)
	}
	at := func() time.Time {
		clock.Lock()
		defer clock.Unlock()
		return now
	}
	issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil, at)
	_, first, _ := ed25519.GenerateKey(rand.Reader)
	_, second, _ := ed25519.GenerateKey(rand.Reader)
	token := func(id string, key ed25519.PrivateKey) error {
		_, err := issuer.Authenticate(t.Context(),
			secret.New(sign(t, jose.EdDSA, key, map[string]any{"kid": id, "typ": "at+jwt"},
				map[string]any{"iss": server.URL, "aud": ours, "sub": "ann", "exp": at().Add(time.Minute).Unix()})),
			"/mcp")
		return err
	}
	server.publish("one", "", first.Public())
	if err := token("one", first); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := token("none", second); !errors.Is(err, ErrInvalid) {
			t.Fatalf("a key that there is not: got %v", err)
		}
	}
	if got := server.asked(); got != 1 {
		t.Errorf("the keys were asked for %d times, want once", got)
	}
	server.publish("two", "", second.Public())
	wait(keysPause)
	if err := token("two", second); err != nil {
		t.Errorf("a new key: got %v", err)
	}
	server.mu.Lock()
	server.keys, server.away = server.keys[1:], false
	server.mu.Unlock()
	wait(keysFresh + keysPause)
	if err := token("one", first); err == nil { // known keys are used until the keys are read
		testenv.Await(t, "a withdrawn key is not valid", func() bool { return token("one", first) != nil })
	}
	server.mu.Lock()
	server.away = true
	server.mu.Unlock()
	wait(keysFresh + keysPause)
	if err := token("two", second); err != nil {
		t.Errorf("while the issuer is away: got %v, want the keys that are known", err)
	}
	wait(keysUsable)
	if err := token("two", second); !errors.Is(err, ErrIssuer) {
		t.Errorf("long after: got %v, want %v", err, ErrIssuer)
	}
}

// An issuer's keys of types, curves and forms that are not understood here do no harm to
// the others (RFC 7517, section 5).
func TestKeysThatAreNotUnderstoodAreIgnored(t *testing.T) {
	server := newAuthServer(t)
	public, key, _ := ed25519.GenerateKey(rand.Reader)
	server.beside = []string{
		`{"kty": "AKP", "alg": "ML-DSA-44", "kid": "pq", "pub": "AAAA"}`, // RFC 9964
		`{"kty": "OKP", "crv": "X25519", "use": "enc", "kid": "x", "x": "3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`,
		`{"kty": "EC", "crv": "secp256k1", "kid": "k1", "x": "AAAA", "y": "AAAA"}`,
		`{"kty": "EC", "crv": "P-256", "kid": "off", "x": "AAAA", "y": "AAAA"}`,
		`{"kty": "RSA", "kid": "half", "e": "AQAB"}`,
		`{"kty": "RSA", "kid": "cut", "e": "AQAB", "n": "AAAA", "x5c": ["no certificate"]}`,
		`{"kty": "oct", "kid": "secret", "k": "AAAA"}`,
		`{}`, `null`, `7`, `"text"`,
	}
	token := sign(t, jose.EdDSA, key, map[string]any{"kid": "one", "typ": "at+jwt"},
		map[string]any{"iss": server.URL, "aud": ours, "sub": "ann", "exp": time.Now().Add(time.Minute).Unix()})
	issuer := func() *Issuer {
		return NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil, nil)
	}
	if _, err := issuer().Authenticate(t.Context(), secret.New(token), "/mcp"); !errors.Is(err, ErrIssuer) ||
		!strings.Contains(err.Error(), "no key that tokens can be checked with, among 11") {
		t.Errorf("with none that is understood: got %v", err)
	}
	server.publish("one", "EdDSA", public)
	if _, err := issuer().Authenticate(t.Context(), secret.New(token), "/mcp"); err != nil {
		t.Errorf("got %v", err)
	}
}

// A restarted issuer may give its new key the ID of the old one, or no ID. So a signature that does
// not match the known keys also causes the keys to be read again, as rarely as an unknown key.
func TestAKeyWithAnOldNameIsRead(t *testing.T) {
	for _, id := range []string{"key", ""} {
		t.Run("named "+id, func(t *testing.T) {
			server := newAuthServer(t)
			now := time.Unix(1_800_000_000, 0)
			issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil,
				func() time.Time { return now })
			token := func(key ed25519.PrivateKey) error {
				header := map[string]any{"typ": "at+jwt"}
				if id != "" {
					header["kid"] = id
				}
				_, err := issuer.Authenticate(t.Context(), secret.New(sign(t, jose.EdDSA, key, header,
					map[string]any{"iss": server.URL, "aud": ours, "sub": "ann", "exp": now.Add(time.Minute).Unix()})),
					"/mcp")
				return err
			}
			_, old, _ := ed25519.GenerateKey(rand.Reader)
			_, next, _ := ed25519.GenerateKey(rand.Reader)
			server.publish(id, "", old.Public())
			if err := token(old); err != nil {
				t.Fatal(err)
			}
			server.mu.Lock()
			server.keys = nil
			server.mu.Unlock()
			server.publish(id, "", next.Public())
			for range 50 {
				if err := token(next); !errors.Is(err, ErrInvalid) {
					t.Fatalf("at once: got %v", err)
				}
			}
			if got := server.asked(); got != 1 {
				t.Errorf("the keys were asked for %d times, want once", got)
			}
			now = now.Add(keysPause)
			if err := token(next); err != nil {
				t.Errorf("a while later: got %v", err)
			}
			if err := token(old); !errors.Is(err, ErrInvalid) {
				t.Errorf("the old key: got %v, want %v", err, ErrInvalid)
			}
			server.mu.Lock()
			server.away = true
			server.mu.Unlock()
			now = now.Add(keysPause)
			if err := token(old); !errors.Is(err, ErrInvalid) {
				t.Errorf("the old key while the issuer is away: got %v, want %v", err, ErrInvalid)
			}
		})
	}
}

// The operator gets the cause if keys cannot be read, before those that are known
// do not count any more.
func TestItIsToldWhyKeysCannotBeRead(t *testing.T) {
	server := newAuthServer(t)
	now := time.Unix(1_800_000_000, 0)
	issuer := NewIssuer(config.Auth{Issuer: server.URL, Audience: ours, Types: []string{"at+jwt"}}, nil,
		func() time.Time { return now })
	type attempt struct {
		err   error
		known time.Duration
	}
	told := make(chan attempt, 10)
	issuer.Unread(func(err error, known time.Duration) { told <- attempt{err, known} })
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	token := func() error {
		_, err := issuer.Authenticate(t.Context(),
			secret.New(sign(t, jose.EdDSA, key, map[string]any{"kid": "one", "typ": "at+jwt"},
				map[string]any{"iss": server.URL, "aud": ours, "sub": "ann", "exp": now.Add(time.Minute).Unix()})),
			"/mcp")
		return err
	}
	server.publish("one", "", key.Public())
	server.away = true
	if err := token(); !errors.Is(err, ErrIssuer) || !strings.Contains(err.Error(), "/keys answers with status 503") {
		t.Errorf("got %v, want that the issuer answers 503", err)
	}
	if got := <-told; got.known != 0 || !strings.Contains(got.err.Error(), "status 503") {
		t.Errorf("told %v, %s", got.err, got.known)
	}
	if err := token(); !errors.Is(err, ErrIssuer) || !strings.Contains(err.Error(), "status 503") {
		t.Errorf("without another attempt: got %v", err)
	}
	server.mu.Lock()
	server.away = false
	server.mu.Unlock()
	now = now.Add(keysPause)
	if err := token(); err != nil {
		t.Fatal(err)
	}
	server.mu.Lock()
	server.away = true
	server.mu.Unlock()
	now = now.Add(time.Hour)
	if err := token(); err != nil {
		t.Errorf("the keys that are known: got %v", err)
	}
	if got := <-told; got.known != keysUsable-time.Hour || !strings.Contains(got.err.Error(), "status 503") {
		t.Errorf("told %v, %s, want how long they count: %s", got.err, got.known, keysUsable-time.Hour)
	}
}
