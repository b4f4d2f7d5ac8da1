// Package oauth signs in to upstream servers (MCP 2025-11-25 and 2026-07-28,
// Authorization): it finds out who signs in for a server, registers Airlock there, lets
// the user consent in a browser, keeps what comes of it encrypted, refreshes it, and
// signs the requests to that server, and to no other.
package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/secret"
)

// Grant is the way to a token.
type Grant string

// The grants. The zero value asks the user.
const (
	AuthorizationCode Grant = ""                   // the user signs in with a browser (OAuth 2.1, section 4.1)
	ClientCredentials Grant = "client_credentials" // Airlock is its own user (OAuth 2.1, section 4.2)
	JWTBearer         Grant = "jwt_bearer"         // a JWT of the workload vouches for Airlock (RFC 7523)
	Enterprise        Grant = "enterprise"         // the company's identity provider vouches for the user (RFC 8693, then RFC 7523)
)

// Config says how to sign in to one server. Only ServerID and URL are needed. It holds
// credentials and prints none of them.
type Config struct {
	ServerID string
	URL      string // of the MCP endpoint
	Grant    Grant
	// Issuer is the only authorization server to use; empty means the first one that
	// the server names.
	Issuer string
	// Scopes take the place of those that the server says it has; empty means those.
	Scopes []string
	// RedirectPort is the port of the redirect URI http://127.0.0.1:PORT/callback, for
	// clients that are registered with one; 0 means any.
	RedirectPort int
	// DPoP has tokens bound to a key also where the server does not ask for it (RFC 9449).
	DPoP bool
	Client
	// AssertionFile holds a JWT: of the workload for JWTBearer, the user's ID token for
	// Enterprise. It is read again for each token, since such files are renewed.
	AssertionFile string
	Provider      Provider
}

// Client is who Airlock is for an authorization server. The zero value registers
// itself there (RFC 7591).
type Client struct {
	ClientID     string
	ClientSecret secret.Value
	ClientKey    secret.Value // a private key in PEM (PKCS #8), for private_key_jwt
	// ClientDocument is the https URL of a client-id metadata document, which is used
	// where the authorization server takes such documents.
	ClientDocument string
}

// Provider is the identity provider of the Enterprise grant.
type Provider struct {
	Issuer       string
	ClientID     string
	ClientSecret secret.Value
}

// LogValue names the server alone.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String names the server alone.
func (c Config) String() string {
	return fmt.Sprintf("oauth.Config{ServerID: %q, [redacted]}", c.ServerID)
}

// GoString is String.
func (c Config) GoString() string { return c.String() }

// MarshalJSON writes the ID alone.
func (c Config) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "{\"server\":%q}", c.ServerID), nil
}

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	u, err := url.Parse(c.URL)
	switch {
	case c.ServerID == "":
		return errors.New("signing in: the server has no ID")
	case err != nil || u.Host == "":
		return fmt.Errorf("signing in to %q: its URL cannot be read", c.ServerID)
	case !slices.Contains([]Grant{AuthorizationCode, ClientCredentials, JWTBearer, Enterprise}, c.Grant):
		return fmt.Errorf("signing in to %q: the grant %q is unknown", c.ServerID, c.Grant)
	case c.Grant == ClientCredentials && (c.ClientID == "" || c.ClientSecret.Reveal() == "" && c.ClientKey.Reveal() == ""):
		return fmt.Errorf("signing in to %q: the grant client_credentials needs clientId, and clientSecret or clientKey", c.ServerID)
	case (c.Grant == JWTBearer || c.Grant == Enterprise) && (c.ClientID == "" || c.AssertionFile == ""):
		return fmt.Errorf("signing in to %q: the grant %s needs clientId and assertionFile", c.ServerID, c.Grant)
	case c.Grant == Enterprise && (c.Provider.Issuer == "" || c.Provider.ClientID == ""):
		return fmt.Errorf("signing in to %q: the grant enterprise needs provider.issuer and provider.clientId", c.ServerID)
	case c.ClientDocument != "" && !strings.HasPrefix(c.ClientDocument, "https://"):
		return fmt.Errorf("signing in to %q: clientDocument must be an https address", c.ServerID)
	case c.Issuer != "" && secure(c.Issuer) != nil, c.Provider.Issuer != "" && secure(c.Provider.Issuer) != nil:
		return fmt.Errorf("signing in to %q: an issuer must be an https address", c.ServerID)
	case c.ClientKey.Reveal() != "":
		if _, err := parseKey(c.ClientKey); err != nil {
			return fmt.Errorf("signing in to %q: clientKey: %w", c.ServerID, err)
		}
	}
	return nil
}

// isInteractive reports whether a person signs in.
func (c Config) isInteractive() bool { return c.Grant == AuthorizationCode }

// Options of New. The zero value keeps nothing on disk.
type Options struct {
	// Store keeps what comes of a sign-in; nil keeps it in memory.
	Store *Store
	// Principal is whose sign-in it is, as caller.Caller.Name says.
	Principal string
	// For is the principal as the command that signs in has to name it; empty where that
	// is the user who types it.
	For string
	// Hold is told each credential before it is used, so that it can be removed from
	// what leaves Airlock. It may be called concurrently; nil: it is not told.
	Hold func(credential string)
	// Version is Airlock's own, as an authorization server is told.
	Version string
	Now     func() time.Time // nil means time.Now
}

// Hold is told nothing where it is nil.
func (o Options) withDefaults() Options {
	if o.Hold == nil {
		o.Hold = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// union returns the words of all lists, each once, in their order.
func union(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		for _, word := range list {
			if word != "" && !slices.Contains(all, word) {
				all = append(all, word)
			}
		}
	}
	return all
}

// retryAfter is how long an authorization server that refused Airlock itself is left
// alone.
const retryAfter = 30 * time.Second

// httpTimeout is how long one request to an authorization server may take.
const httpTimeout = 20 * time.Second

func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, httpTimeout)
}
