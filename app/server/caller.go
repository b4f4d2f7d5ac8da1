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
	"github.com/airlock-mcp/airlock/internal/procfs"
)

// Identify authenticates an HTTP request and returns its caller, or an error. The Session of
// the caller identifies the credential, so hosts with different credentials have different
// sessions. It is called once for each request and must be safe for concurrent use.
type Identify func(r *http.Request) (caller.Caller, error)

// callers derives the caller of each request. See docs/design/0008.
type callers struct {
	local  Local  // of stdio
	key    []byte // of derived session IDs, which differ between servers and cannot be guessed
	shared bool   // other nodes derive the same session IDs
}

func newCallers(opts Options) *callers {
	c := &callers{local: opts.Local, shared: opts.SessionKey != nil}
	if c.local == nil {
		user := caller.Caller{Principal: opts.Principal, Kind: caller.Local, Profile: opts.Profile}
		c.local = func(context.Context) (caller.Caller, error) { return user, nil }
	}
	if c.key = opts.SessionKey; c.key == nil {
		c.key = make([]byte, sha256.Size)
		rand.Read(c.key) // never fails: crypto/rand aborts the program instead
	}
	return c
}

// connectionKey is the context key of a connection other than HTTP. Its value is a
// connected.
type connectionKey struct{}

// connected is the session of a connection and its caller.
type connected struct {
	session string
	lineage string
	local   Local
}

// processLineage returns the lineage of the host that started a program.
func processLineage(program int) string {
	host, err := procfs.Host(program)
	if program == 0 || err != nil {
		return caller.UnknownLineage
	}
	name, err := procfs.Name(host)
	if err != nil {
		return caller.UnknownLineage
	}
	return caller.ProcessLineage + name
}

// of returns the caller of a request. It relies only on facts that the transport has proved:
// the credential of an HTTP request, or the connection of any other request.
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
		local.Lineage = connection.lineage
		if local.Session != "" { // of a credential, which the host may present from another process
			local.Lineage = local.CredentialLineage()
		}
		local.Session = connection.session
		return local
	}
	proved, _ := req.GetExtra().TokenInfo.Extra[provedKey].(caller.Caller)
	proved.Lineage = proved.CredentialLineage()
	if id := req.GetSession().ID(); id != "" {
		proved.Session = c.derive(proved.Key(), sessionPrefix+id)
	} else {
		proved.Session = c.standalone(proved)
	}
	return proved
}

// standalone returns the ID of the session of a host without protocol sessions: that of its credential.
func (c *callers) standalone(proved caller.Caller) string {
	return c.derive(proved.Key(), "credential "+proved.Session)
}

// sessionPrefix begins the name of a conversation with a protocol session.
const sessionPrefix = "session "

// conversationOf returns the conversation of an authenticated HTTP request. Its ID is empty
// if the request has no session ID.
func conversationOf(r *http.Request) conversation {
	proved := provedBy(r)
	return conversation{proved.Account(), proved.Key(), r.Header.Get("Mcp-Session-Id")}
}

// provedBy returns the caller of an authenticated HTTP request, with the session of its credential.
func provedBy(r *http.Request) caller.Caller {
	proved, _ := auth.TokenInfoFromContext(r.Context()).Extra[provedKey].(caller.Caller)
	return proved
}

// ofSession returns the ID of the session of an authenticated HTTP request. The identity is
// part of the ID, so the protocol ID of another caller's session leads to no existing session.
func (c *callers) ofSession(r *http.Request) string {
	about := conversationOf(r)
	return c.derive(about.identity, sessionPrefix+about.id)
}

// IsHTTP reports whether a request came over HTTP, so that its caller is the one that
// authenticated has found.
func IsHTTP(req mcp.Request) bool {
	extra := req.GetExtra()
	return extra != nil && extra.TokenInfo != nil
}

// derive returns the session ID for a conversation of an identity. The session ID or token of
// the transport is a credential (anyone who knows it can join), so only a keyed digest of it
// is passed on.
func (c *callers) derive(identity, conversation string) string {
	mac := hmac.New(sha256.New, c.key)
	fmt.Fprintf(mac, "%d:%s%s", len(identity), identity, conversation)
	return "ses_" + hex.EncodeToString(mac.Sum(nil)[:16])
}

// provedKey is the key of the caller in the Extra map of a request's token information.
const provedKey = "io.github.airlock-mcp/caller"

// unauthorized answers a request of an unknown caller.
func unauthorized(w http.ResponseWriter, _ *http.Request, _ error) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	problem.Write(w, http.StatusUnauthorized, "unauthorized",
		"the request has no credential, or one that is not valid")
}

// authenticated rejects requests of unknown callers. It passes the caller on as token
// information, which the SDK gives to every handler. A protocol session belongs to the identity
// that opened it, and no other identity can use its ID. The credential itself is not passed on.
func authenticated(identify Identify, refuse func(http.ResponseWriter, *http.Request, error),
	next http.Handler) http.Handler {
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
		verified := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{
				UserID: proved.Key(), Scopes: proved.Scopes, Extra: map[string]any{provedKey: proved},
			}, nil
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer verified") // the SDK calls verified only if there is a bearer token
		auth.RequireBearerToken(
			verified, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next).ServeHTTP(w, r)
	})
}
