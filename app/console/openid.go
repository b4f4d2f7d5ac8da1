package console

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// OpenIDSignIn is what the console needs of the daemon to sign people in with OpenID Connect. Its methods are safe for
// concurrent use.
type OpenIDSignIn interface {
	// SignIn returns the issuer and the client, with its secret. The error is auth.ErrSignIn if people cannot sign in.
	SignIn(ctx context.Context) (issuer string, client config.SignIn, err error)
	// Identify returns the person of an ID token with a nonce, see auth.Issuer.Person.
	Identify(ctx context.Context, token secret.Value, nonce string, info map[string]json.RawMessage) (auth.Person,
		error)
	// Caller returns the present caller of a person, see auth.Authenticator.Person.
	Caller(ctx context.Context, p auth.Person) (caller.Caller, error)
	// SignOut ends what was started with a sign-in.
	SignOut(ctx context.Context, p auth.Person) error
	// Hold redacts a credential from everything that leaves Airlock.
	Hold(credential string)
}

// The paths of a sign-in with OpenID Connect.
const (
	openIDPath   = signInPath + "/openid"
	callbackPath = signInPath + "/callback"
)

// consentTime is how long a browser may take from the start to the answer.
const consentTime = 10 * time.Minute

// openID signs people in at the OpenID provider. The sign-in that a browser has begun is in a cookie of that browser,
// encrypted with a key of this process or its cluster, so that any number of browsers can begin. Its methods are safe
// for concurrent use.
type openID struct {
	signIn OpenIDSignIn
	seal   cipher.AEAD

	mu     sync.Mutex // guards the fields below
	of     config.SignIn
	client *oauth.OpenID
}

// newOpenID returns a sign-in whose cookies are encrypted with a key, or with a new one if it is nil.
func newOpenID(signIn OpenIDSignIn, key []byte) (*openID, error) {
	if key == nil {
		key = make([]byte, 32)
		rand.Read(key) // never fails
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	return &openID{signIn: signIn, seal: seal}, err
}

// begun is the content of the cookie.
type begun struct {
	oauth.Consent
	Next  string    `json:"next"`
	Until time.Time `json:"until"`
}

// openIDRoutes registers the routes of a sign-in with OpenID Connect.
func (c *Console) openIDRoutes() {
	if c.openID != nil {
		c.mux.HandleFunc("GET "+openIDPath, c.beginOpenID)
		c.mux.HandleFunc("GET "+callbackPath, c.finishOpenID)
	}
}

// provider returns the OpenID provider that is configured now. The error is auth.ErrSignIn.
func (c *Console) provider(ctx context.Context) (*oauth.OpenID, error) {
	o := c.openID
	if o == nil {
		return nil, auth.ErrSignIn
	}
	issuer, client, err := o.signIn.SignIn(ctx)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.client == nil || o.client.Issuer != issuer || !reflect.DeepEqual(o.of, client) {
		o.of = client
		o.client = &oauth.OpenID{Issuer: issuer, ClientID: client.ClientID, Secret: client.ClientSecret,
			Scopes: client.Scopes, Redirect: c.opts.URL() + callbackPath, Hold: o.signIn.Hold, Now: c.opts.Now}
	}
	return o.client, nil
}

// consentCookie returns the cookie of a sign-in that has begun. It is sent when the provider redirects to the
// callback, so it cannot be strict. An empty value removes it.
func (c *Console) consentCookie(value string) *http.Cookie {
	cookie := c.cookie(value)
	cookie.Name += "-openid"
	cookie.SameSite = http.SameSiteLaxMode
	if value != "" {
		cookie.MaxAge = int(consentTime / time.Second)
	}
	return cookie
}

// beginOpenID redirects a browser to the provider.
func (c *Console) beginOpenID(w http.ResponseWriter, r *http.Request) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		c.showSignIn(w, http.StatusForbidden, signIn{Problem: "Another site wanted to begin the sign-in.",
			Hint: "Begin it on this page"})
		return
	}
	if own, err := url.Parse(c.opts.URL()); err == nil &&
		own.Host != r.Host { // the cookie would not reach the callback
		w.Header().Set("Location", c.opts.URL()+signInPath)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	provider, err := c.provider(r.Context())
	var address string
	var consent oauth.Consent
	if err == nil {
		address, consent, err = provider.Begin(r.Context())
	}
	var value string
	if err == nil {
		value, err = c.openID.sealed(begun{consent, localPath(r.URL.Query().Get("next")),
			c.opts.Now().Add(consentTime)})
	}
	if err != nil {
		c.refuseOpenID(w, r, err)
		return
	}
	http.SetCookie(w, c.consentCookie(value))
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// errNotBegun refuses the answer of a provider in a browser that has not begun a sign-in.
var errNotBegun = errors.New("this browser has not begun the sign-in")

// finishOpenID signs in the person whom the provider names in its answer. The session is new, whatever cookies the
// browser had before.
func (c *Console) finishOpenID(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, c.consentCookie(""))
	if c.failures.tooMany(r.RemoteAddr) {
		c.tooManyFailures(w)
		return
	}
	person, next, err := c.answeredOpenID(r)
	var who caller.Caller
	if err == nil {
		who, err = c.openID.signIn.Caller(r.Context(), person)
	}
	if err != nil {
		c.failures.add(r.RemoteAddr)
		c.refuseOpenID(w, r, err)
		return
	}
	if !c.open(w, r, &session{person: &person, account: who.Account()}) {
		return
	}
	// The browser does not send the strict cookie of the session while it follows the provider's redirect.
	w.Header().Set("Refresh", "0; url="+next)
	c.render(w, nil, "signedin", view{title: "Signed in", data: next})
}

func (c *Console) answeredOpenID(r *http.Request) (p auth.Person, next string, err error) {
	provider, err := c.provider(r.Context())
	if err != nil {
		return p, "", err
	}
	var b begun
	cookies := r.CookiesNamed(c.consentCookie("").Name)
	if len(cookies) != 1 || !c.openID.opened(cookies[0].Value, &b) || !c.opts.Now().Before(b.Until) {
		return p, "", errNotBegun
	}
	identity, err := provider.Finish(r.Context(), b.Consent, r.URL.Query())
	if err != nil {
		return p, "", err
	}
	p, err = c.openID.signIn.Identify(r.Context(), identity.Token, b.Nonce, identity.Info)
	return p, localPath(b.Next), err
}

// refuseOpenID shows why a sign-in failed. Only the log has the cause.
func (c *Console) refuseOpenID(w http.ResponseWriter, r *http.Request, err error) {
	shown, status := signIn{Problem: "The sign-in at the identity provider failed.", Hint: "Try again; the log of " +
		"Airlock has the cause"}, http.StatusForbidden
	var denied *oauth.DeniedError
	switch {
	case errors.Is(err, auth.ErrSignIn):
		shown, status = signIn{Problem: "Sign-in with an identity provider is not configured.",
			Hint: "The operator sets auth.signIn"}, http.StatusNotFound
	case errors.Is(err, auth.ErrNoRights):
		shown = signIn{Problem: "Your account may not do anything here.",
			Hint: "Ask the operator for a group in auth.signIn.groups"}
	case errors.Is(err, auth.ErrProfiles):
		shown = signIn{Problem: "Your groups name more than one profile.", Hint: "Ask the operator"}
	case errors.Is(err, errNotBegun):
		shown.Problem, shown.Hint = "This browser has not begun the sign-in, or too long ago.", "Begin it on this page"
	case errors.As(err, &denied):
		shown.Problem, shown.Hint = "The identity provider did not sign you in.", "Try again, or ask its operator"
	}
	if r.Context().Err() == nil {
		c.opts.Logger.WarnContext(r.Context(), "a sign-in with OpenID Connect failed", slog.Any(telemetry.KeyError,
			err))
	}
	c.showSignIn(w, status, shown)
}

func (o *openID) sealed(b begun) (string, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(o.seal.Seal(nil, nil, text, nil)), nil
}

func (o *openID) opened(value string, b *begun) bool {
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return false
	}
	text, err := o.seal.Open(nil, nil, raw, nil)
	return err == nil && strictjson.UnmarshalOpen(text, b) == nil
}
