// Package oauth signs in to upstream servers (MCP 2025-11-25 and 2026-07-28,
// Authorization). It discovers the authorization server, registers Airlock there, lets
// the user consent in a browser, stores the tokens encrypted, refreshes them, and
// authorizes the requests to that server only.
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

// Grant is the OAuth grant that is used to get a token.
type Grant string

// The grants. The zero value asks the user.
const (
	AuthorizationCode Grant = ""                   // the user signs in with a browser (OAuth 2.1, section 4.1)
	ClientCredentials Grant = "client_credentials" // Airlock is its own user (OAuth 2.1, section 4.2)
	JWTBearer         Grant = "jwt_bearer"         // a JWT of the workload vouches for Airlock (RFC 7523)
	// the company's identity provider vouches for the user (RFC 8693, then RFC 7523)
	Enterprise Grant = "enterprise"
	// the company's identity provider issues the tokens of the server itself (RFC 8693)
	TokenExchange Grant = "token_exchange"
)

// Config describes how to sign in to one server. Only ServerID and URL are required. It
// contains credentials, which its methods never print.
type Config struct {
	ServerID string
	URL      string // of the MCP endpoint
	Grant    Grant
	// Issuer is the only authorization server to use; empty means the first one that
	// the server names.
	Issuer string
	// Scopes replace the scopes that the server announces; empty means those.
	Scopes []string
	// RedirectPort is the port of the redirect URI http://127.0.0.1:PORT/callback, for
	// clients that are registered with one; 0 means any.
	RedirectPort int
	// DPoP requests tokens that are bound to a key (RFC 9449) even if the server does not
	// require them.
	DPoP bool
	Client
	// AssertionFile holds a JWT: of the workload for JWTBearer, the user's ID token for
	// Enterprise. It is read again for each token, since such files are renewed. Without it, Enterprise lets each user
	// sign in at the identity provider.
	AssertionFile string
	Provider      Provider
	// Delegate sends the identity provider who acts for the user, see Source.Acting.
	Delegate bool
}

// Client is Airlock's identity at an authorization server. With the zero value, Airlock
// registers itself there (RFC 7591).
type Client struct {
	ClientID     string
	ClientSecret secret.Value
	ClientKey    secret.Value // a private key in PEM (PKCS #8), for private_key_jwt
	// ClientDocument is the https URL of a client-id metadata document, which is used if
	// the authorization server supports such documents.
	ClientDocument string
}

// Provider is the identity provider of Enterprise and TokenExchange.
type Provider struct {
	Issuer       string
	ClientID     string
	ClientSecret secret.Value
	ClientKey    secret.Value // a private key in PEM (PKCS #8), for private_key_jwt and for actor tokens
}

// LogValue returns only the name of the server.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String returns only the name of the server.
func (c Config) String() string {
	return fmt.Sprintf("oauth.Config{ServerID: %q, [redacted]}", c.ServerID)
}

// GoString is String.
func (c Config) GoString() string { return c.String() }

// MarshalJSON writes only the ID.
func (c Config) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "{\"server\":%q}", c.ServerID), nil
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	u, err := url.Parse(c.URL)
	switch {
	case c.ServerID == "":
		return errors.New("signing in: the server has no ID")
	case err != nil || u.Host == "":
		return fmt.Errorf("signing in to %q: its URL cannot be read", c.ServerID)
	case !slices.Contains([]Grant{AuthorizationCode, ClientCredentials, JWTBearer, Enterprise, TokenExchange},
		c.Grant):
		return fmt.Errorf("signing in to %q: the grant %q is unknown", c.ServerID, c.Grant)
	case c.Grant == ClientCredentials && (c.ClientID == "" || c.ClientSecret.Reveal() == "" &&
		c.ClientKey.Reveal() == ""):
		return fmt.Errorf("signing in to %q: the grant client_credentials needs clientId, and clientSecret or "+
			"clientKey", c.ServerID)
	case c.Grant == JWTBearer && (c.ClientID == "" || c.AssertionFile == ""):
		return fmt.Errorf("signing in to %q: the grant jwt_bearer needs clientId and assertionFile", c.ServerID)
	case c.ClientDocument != "" && !strings.HasPrefix(c.ClientDocument, "https://"):
		return fmt.Errorf("signing in to %q: clientDocument must be an https address", c.ServerID)
	case c.Issuer != "" && secure(c.Issuer) != nil, c.Provider.Issuer != "" && secure(c.Provider.Issuer) != nil:
		return fmt.Errorf("signing in to %q: an issuer must be an https address", c.ServerID)
	}
	for name, key := range map[string]secret.Value{"clientKey": c.ClientKey,
		"provider.clientKey": c.Provider.ClientKey} {
		if _, err := parseKey(key); err != nil && key.Reveal() != "" {
			return fmt.Errorf("signing in to %q: %s: %w", c.ServerID, name, err)
		}
	}
	return c.checkExchange()
}

// isInteractive reports whether a person signs in.
func (c Config) isInteractive() bool { return c.Grant == AuthorizationCode || c.Exchanges() }

// Options of New. The zero value keeps nothing on disk.
type Options struct {
	// Store keeps the tokens and registrations; nil keeps them in memory.
	Store *Store
	// Principal is the owner of the sign-in, as returned by caller.Caller.Name.
	Principal string
	// For is the principal as the login command has to name it. It is empty if that is the
	// user who types the command.
	For string
	// Hold is called with each credential before it is used, so that it can be redacted
	// from everything that leaves Airlock. It must be safe for concurrent use and may be nil.
	Hold func(credential string)
	// Version is the version of Airlock that is sent to the authorization server.
	Version string
	Now     func() time.Time // nil means time.Now
}

// withDefaults replaces a nil Hold by a function that does nothing, and a nil Now by time.Now.
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
	had := map[string]bool{"": true}
	for _, list := range lists {
		for _, word := range list {
			if !had[word] {
				had[word] = true
				all = append(all, word)
			}
		}
	}
	return all
}

// Limits of what one sign-in remembers of a server's demands. A server could demand other scopes at each call.
const (
	maxScopes = 200
	maxScope  = 256 // bytes
)

// scopesOf reads the scopes of a server's text. Those that no authorization server can have (RFC 6749, section 3.3) or
// that exceed the limits are left out.
func scopesOf(text string) []string {
	var all []string
	for word := range strings.FieldsSeq(text) {
		isOther := func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }
		if len(all) < maxScopes && len(word) <= maxScope && !strings.ContainsFunc(word, isOther) {
			all = append(all, word)
		}
	}
	return all
}

// retryAfter is the pause after an authorization server has refused Airlock itself.
const retryAfter = 30 * time.Second

// httpTimeout is how long one request to an authorization server may take.
const httpTimeout = 20 * time.Second

func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, httpTimeout)
}
