package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// How long keys are used, and how often they are asked for.
const (
	keysFresh   = 15 * time.Minute // then they are read again
	keysUsable  = 24 * time.Hour   // while they cannot be read again
	keysPause   = 10 * time.Second // between two attempts
	keysTime    = 5 * time.Second  // of one attempt
	maxDocument = 256 << 10        // bytes of metadata, or of keys
)

// ErrIssuer is returned, wrapped with the cause, if the keys of the issuer cannot be read.
var ErrIssuer = errors.New("the keys of the issuer of tokens cannot be read")

// keys are the keys of an issuer. They are read again if a token names an unknown key, with at most
// one attempt at once and a pause of keysPause between attempts.
type keys struct {
	issuer, address string
	client          *http.Client
	now             func() time.Time
	unread          func(err error, known time.Duration) // see Issuer.Unread; may be nil

	mu      sync.Mutex
	set     []jose.JSONWebKey
	read    time.Time     // when set was read; zero: never
	tried   time.Time     // when it was tried last
	failed  error         // of that attempt
	reading chan struct{} // closed when the attempt under way is over; nil: none is
}

func newKeys(issuer, address string, client *http.Client, now func() time.Time) *keys {
	if client == nil {
		client = &http.Client{Transport: newTransport(issuer, address)}
	}
	own := *client
	own.Timeout = keysTime
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &keys{issuer: issuer, address: address, client: &own, now: now}
}

// newTransport returns a transport to the issuer and to the address of its keys, which may be
// empty. An address that the issuer's metadata names is not nearer than the issuer.
func newTransport(addresses ...string) *reach.Transport {
	dialer := &reach.Dialer{}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			dialer.Named = append(dialer.Named, u.Hostname())
		}
	}
	return reach.NewTransport(dialer, nil)
}

// find returns the keys that a token may be signed with: those of its key ID, of the
// right use and algorithm. An empty result is not an error, unless the keys could not
// be read at all. again is set if the keys found before did not make the token's
// signature: an issuer may have given a new key an old one's ID, or no ID.
func (k *keys) find(ctx context.Context, id, algorithm string, again bool) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	found, age := k.ofLocked(id, algorithm), k.now().Sub(k.read)
	fresh := !k.read.IsZero() && age < keysFresh
	if len(found) > 0 && fresh && !again {
		k.mu.Unlock()
		return found, nil
	}
	attempt := k.attemptLocked()
	k.mu.Unlock()
	if attempt != nil && (len(found) == 0 || again || age >= keysUsable) { // else what is known will do meanwhile
		select {
		case <-attempt:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read.IsZero() || k.now().Sub(k.read) >= keysUsable {
		return nil, fmt.Errorf("%w: %w", ErrIssuer, k.failed)
	}
	return k.ofLocked(id, algorithm), nil
}

// has reports whether the keys that were read last include one, by its ID. They are read for that only if they never
// were: another node of a cluster has authenticated the caller.
func (k *keys) has(ctx context.Context, id string) bool {
	k.mu.Lock()
	unread := k.read.IsZero()
	k.mu.Unlock()
	if unread {
		_, _ = k.find(ctx, id, "", false) // without keys, it is not there
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.set, func(key jose.JSONWebKey) bool { return id == "" || key.KeyID == id })
}

// ofLocked selects keys. A token without a key ID may be of any.
func (k *keys) ofLocked(id, algorithm string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for _, key := range k.set {
		if (id == "" || key.KeyID == id) && (key.Use == "" || key.Use == "sig") &&
			(key.Algorithm == "" || key.Algorithm == algorithm) {
			found = append(found, key)
		}
	}
	return found
}

// attemptLocked has the keys read, unless that was tried just now. It returns what is
// closed when the attempt in progress is over; nil if there is nothing to wait for.
func (k *keys) attemptLocked() chan struct{} {
	if k.reading != nil {
		return k.reading
	}
	if !k.tried.IsZero() && k.now().Sub(k.tried) < keysPause {
		return nil
	}
	over := make(chan struct{})
	k.tried, k.reading = k.now(), over
	go func() { // ends after keysTime at the latest
		set, err := k.fetch()
		k.mu.Lock()
		if err == nil {
			k.set, k.read = set, k.now()
		}
		known := time.Duration(0)
		if !k.read.IsZero() {
			known = max(0, keysUsable-k.now().Sub(k.read))
		}
		k.failed, k.reading = err, nil
		k.mu.Unlock()
		if err != nil && k.unread != nil {
			k.unread(err, known)
		}
		close(over)
	}()
	return over
}

// fetch reads the keys from the configured or the published address.
func (k *keys) fetch() ([]jose.JSONWebKey, error) {
	ctx, stop := context.WithTimeout(context.Background(), keysTime)
	defer stop()
	address := k.address
	if address == "" {
		var err error
		if address, err = k.discover(ctx); err != nil {
			return nil, err
		}
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.document(ctx, address, &set); err != nil {
		return nil, err
	}
	keys := readable(set.Keys)
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key that tokens can be checked with, among %d", address, len(set.Keys))
	}
	return keys, nil
}

// readable returns the supported keys of a set. It ignores incomplete keys and those of other types
// or curves (RFC 7517, section 5), because issuers also publish keys for encryption and of new
// kinds.
func readable(set []json.RawMessage) []jose.JSONWebKey {
	var keys []jose.JSONWebKey
	for _, text := range set {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(text) == nil && key.IsPublic() && key.Valid() {
			keys = append(keys, key)
		}
	}
	return keys
}

// discover finds the address of the keys in the issuer's metadata (RFC 8414, section 3.1;
// OpenID Connect Discovery 1.0, section 4).
func (k *keys) discover(ctx context.Context) (string, error) {
	u, err := url.Parse(k.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	var failed error
	for _, at := range []string{"/.well-known/oauth-authorization-server" + path,
		"/.well-known/openid-configuration" + path, path + "/.well-known/openid-configuration"} {
		var metadata struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		if err := k.document(ctx, u.Scheme+"://"+u.Host+at, &metadata); err != nil {
			failed = err
			continue
		}
		if metadata.Issuer != k.issuer { // RFC 8414, section 3.3
			return "", fmt.Errorf("the metadata are of another issuer than %q", k.issuer)
		}
		keysURL, err := url.Parse(metadata.Keys)
		if err != nil || keysURL.Scheme != "https" && keysURL.Scheme != u.Scheme {
			return "", errors.New("the metadata name no address of keys that can be trusted")
		}
		return metadata.Keys, nil
	}
	return "", failed
}

// document reads a JSON document.
func (k *keys) document(ctx context.Context, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := k.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers with status %d", address, answer.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	if err != nil {
		return err
	}
	if len(text) > maxDocument {
		return fmt.Errorf("%s answers with more than %d bytes", address, maxDocument)
	}
	if err := strictjson.UnmarshalOpen(text, into); err != nil {
		return fmt.Errorf("%s answers with something else than the JSON that is expected: %w", address, err)
	}
	return nil
}
