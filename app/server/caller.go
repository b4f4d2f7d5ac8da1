package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/problem"
)

// Identify says who makes an HTTP request, from what the request proves, or why
// that is not known. The Session of the caller names the credential: hosts with
// credentials of their own have sessions of their own. It is called once for
// each request, maybe concurrently.
type Identify func(r *http.Request) (caller.Caller, error)

// LocalUser identifies everyone who reaches the address as the user whom Airlock
// runs for. Nothing tells such callers apart but the sessions of the protocol:
// the requests of revisions without sessions are all of one caller. It is for a
// loopback address that only that user's programs can reach.
func LocalUser(principal string) Identify {
	return func(*http.Request) (caller.Caller, error) {
		return caller.Caller{Principal: principal, Kind: caller.Local, Session: "loopback"}, nil
	}
}

// callers derives the caller of each request. See docs/design/0008.
type callers struct {
	local Local             // of stdio
	key   [sha256.Size]byte // of derived session IDs: they differ from server to server, and cannot be guessed
}

func newCallers(opts Options) *callers {
	c := &callers{local: opts.Local}
	if c.local == nil {
		user := caller.Caller{Principal: opts.Principal, Kind: caller.Local, Profile: opts.Profile}
		c.local = func(context.Context) (caller.Caller, error) { return user, nil }
	}
	rand.Read(c.key[:]) // never fails: crypto/rand aborts the program instead
	return c
}

// connectionKey is the key of the context of a connection that is no HTTP: its
// value is a connected.
type connectionKey struct{}

// connected is the session that a connection is, and who has it.
type connected struct {
	session string
	local   Local
}

// of returns who makes a request. Only what the transport has proved counts:
// the credential of an HTTP request, the connection of any other.
func (c *callers) of(ctx context.Context, req mcp.Request) caller.Caller {
	if !IsHTTP(req) {
		connection, ok := ctx.Value(connectionKey{}).(connected)
		if !ok {
			return caller.Caller{}
		}
		local, err := connection.local(ctx)
		if err != nil {
			return caller.Caller{}
		}
		local.Session = connection.session
		return local
	}
	proved, _ := req.GetExtra().TokenInfo.Extra[provedKey].(caller.Caller)
	if id := req.GetSession().ID(); id != "" {
		proved.Session = c.derive(identityOf(proved), sessionPrefix+id)
	} else {
		proved.Session = c.derive(identityOf(proved), "credential "+proved.Session)
	}
	return proved
}

// sessionPrefix begins the name of a conversation that the protocol names.
const sessionPrefix = "session "

// conversationOf returns what an authenticated HTTP request is a part of; it has no ID
// where the request names no session.
func conversationOf(r *http.Request) conversation {
	proved, _ := auth.TokenInfoFromContext(r.Context()).Extra[provedKey].(caller.Caller)
	return conversation{proved.Account, identityOf(proved), r.Header.Get("Mcp-Session-Id")}
}

// ofSession returns the session that an authenticated HTTP request is about. The
// identity is part of it, so that of another is one which does not exist.
func (c *callers) ofSession(r *http.Request) string {
	about := conversationOf(r)
	return c.derive(about.identity, sessionPrefix+about.id)
}

// IsHTTP reports whether a request came over HTTP: then authenticated has
// said who makes it.
func IsHTTP(req mcp.Request) bool {
	extra := req.GetExtra()
	return extra != nil && extra.TokenInfo != nil
}

// derive returns the ID of the session that a conversation of an identity is.
// What a transport calls a session, or a token, is a credential there (anyone
// who knows it may join), so only a keyed digest goes on.
func (c *callers) derive(identity, conversation string) string {
	mac := hmac.New(sha256.New, c.key[:])
	fmt.Fprintf(mac, "%d:%s%s", len(identity), identity, conversation)
	return "ses_" + hex.EncodeToString(mac.Sum(nil)[:16])
}

// identityOf names a principal with its kind and issuer, unambiguously.
func identityOf(c caller.Caller) string {
	return fmt.Sprintf("%d:%s%d:%s%s", len(c.Kind), c.Kind, len(c.Issuer), c.Issuer, c.Principal)
}

// provedKey is where a request's token information holds its caller.
const provedKey = "io.github.airlock-mcp/caller"

// unauthorized answers a request of an unknown caller.
func unauthorized(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	problem.Write(w, http.StatusUnauthorized, "unauthorized", "the request does not say who makes it, or its credential is not valid")
}

// authenticated lets only requests with a known caller pass. The caller goes on
// as token information, which the SDK hands to every handler; a session of the
// protocol belongs to the identity that began it, and no other can use its ID.
// The credential itself goes no further.
func authenticated(identify Identify, refuse func(http.ResponseWriter, *http.Request, error), next http.Handler) http.Handler {
	if refuse == nil {
		refuse = unauthorized
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proved, err := identify(r)
		if err == nil && !proved.Known() {
			err = ErrUnknownCaller
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		if proved.Account == "" {
			proved.Account = identityOf(proved)
		}
		verified := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{
				UserID: identityOf(proved), Scopes: proved.Scopes, Extra: map[string]any{provedKey: proved},
			}, nil
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer verified") // what the SDK wants to see before it asks verified
		auth.RequireBearerToken(verified, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next).ServeHTTP(w, r)
	})
}
