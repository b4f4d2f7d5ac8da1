package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Login signs in to one server.
type Login struct {
	config    *config.Config
	server    config.Server // with its references resolved
	source    *oauth.Source
	principal string
	version   string
	by        audit.Identity
	log       *audit.Log // nil: the log is opened for one record
}

// OpenLogin prepares a sign-in to a server for this user or for a principal that calls over HTTP
// (caller.Caller.Name). It resolves only the credentials of this server.
func OpenLogin(ctx context.Context, c *config.Config, serverID, principal, version string) (*Login, error) {
	if principal == "" {
		principal = Principal()
	}
	l := &Login{config: c, principal: principal, version: version, by: audit.Identity{Principal: Principal()}}
	return l, l.open(ctx, serverID, func(string) {})
}

// open finds the server and makes its source. hold is called with each credential.
func (l *Login) open(ctx context.Context, serverID string, hold func(credential string)) error {
	c := l.config
	at := slices.IndexFunc(c.Servers, func(s config.Server) bool { return s.ID == serverID })
	if at < 0 {
		return noSuchServer(c, serverID)
	}
	only := *c
	only.Servers, only.Embeddings.Key = []config.Server{c.Servers[at]}, secret.New("")
	resolved, err := ResolveSecrets(ctx, &only)
	if err != nil {
		return err
	}
	l.server = resolved.Servers[0]
	if l.source, err = SignIn(l.server, l.principal, l.version, hold); err != nil {
		return err
	}
	if l.source == nil && l.server.URL == "" {
		return &setup.Error{Err: fmt.Errorf("the server %q is a program that Airlock starts: there is nothing to "+
			"sign in to",
			serverID),
			Advice: fmt.Sprintf("it gets its credentials in mcpServers.%s.env", serverID)}
	}
	if l.source == nil {
		return &setup.Error{Err: fmt.Errorf(
			"the headers of the server %q have an Authorization, which takes the place of a sign-in", serverID),
			Advice: fmt.Sprintf("remove it from mcpServers.%s.headers to sign in", serverID)}
	}
	return nil
}

// errSharedSignIn is why a caller cannot sign in.
var errSharedSignIn = errors.New(
	"the sign-in to this server is one for all callers: the user whom Airlock runs for signs in")

func noSuchServer(c *config.Config, serverID string) error {
	ids := make([]string, len(c.Servers))
	for i, server := range c.Servers {
		ids[i] = server.ID
	}
	hint := "the servers are those of mcpServers in the configuration"
	if len(ids) > 0 {
		hint = "the servers are " + strings.Join(ids, ", ")
	}
	if best := nearest.Word(serverID, ids); best != "" {
		hint = fmt.Sprintf("did you mean %q?", best)
	}
	return &setup.Error{Err: fmt.Errorf("there is no server %q", serverID), Advice: hint}
}

// SignsIn asks the server for its requirements and signs the person in.
func (l *Login) SignsIn(ctx context.Context, person oauth.Person, scopes []string) (oauth.SignedIn, error) {
	if err := l.probe(ctx); err != nil {
		return oauth.SignedIn{}, err
	}
	signed, err := l.source.Login(ctx, person, scopes)
	if err != nil {
		return signed, err
	}
	what := fmt.Sprintf("signed %q in to the server %q at %q, for %q", l.principal, l.server.ID, signed.Issuer,
		signed.Resource)
	if signed.Account != "" {
		what += fmt.Sprintf(", as %q", signed.Account)
	}
	if len(signed.Scopes) > 0 {
		what += fmt.Sprintf(", with the scopes %q", signed.Scopes)
	}
	return signed, errors.Join(l.record(ctx, what), RequestRefresh())
}

// probe lists the server's tools without a sign-in, so that the server sends a challenge.
// A server that lists them anyway may still demand a sign-in for calls.
func (l *Login) probe(ctx context.Context) error {
	_, err := l.connect(ctx, l.source.Unsigned(), "")
	if err != nil && !errors.Is(err, upstream.ErrSignIn) && !errors.Is(err, upstream.ErrUnauthorized) {
		return err
	}
	return nil
}

// Tools connects with the sign-in and returns how many tools there are.
func (l *Login) Tools(ctx context.Context) (int, error) {
	directory, err := listsDirectory()
	if err != nil {
		return 0, err
	}
	return l.connect(ctx, l.source, directory)
}

func (l *Login) connect(ctx context.Context, credentials upstream.Credentials, cache string) (tools int, err error) {
	made := upstreamConfig(l.server)
	made.Credentials, made.Met = credentials, l.source.Met()
	set, err := upstream.New([]upstream.Config{made},
		&upstream.Options{Logger: slog.New(slog.DiscardHandler), Version: l.version, CacheDir: cache})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	set.Connect(ctx)
	if err := set.Problem(l.server.ID); err != nil {
		return 0, err
	}
	return len(set.Servers()[0].Tools), ctx.Err()
}

// SignsOut revokes the sign-in, if the authorization server supports that, and deletes it.
func (l *Login) SignsOut(ctx context.Context) (oauth.LoggedOut, error) {
	out, err := l.source.Logout(ctx)
	if err != nil || !out.WasSignedIn {
		return out, err
	}
	return out, errors.Join(l.record(ctx, fmt.Sprintf("signed %q out of the server %q", l.principal, l.server.ID)),
		RequestRefresh())
}

// record writes an action of an operator to the audit log after it was done. So if the log cannot
// be written, the action is not undone.
func (l *Login) record(ctx context.Context, what string) error {
	record := audit.Record{Kind: audit.KindOperator, Identity: l.by, Act: audit.Act{ServerID: l.server.ID},
		Detail: what}
	if l.log != nil {
		return l.log.Append(ctx, record)
	}
	return withLog(l.config, func(log *audit.Log) error { return log.Append(ctx, record) })
}

// SignInState is the state of a sign-in to one server.
type SignInState struct {
	ServerID string
	URL      string
	oauth.State
	Problem string // why the state could not be read
}

// SignInStates returns the states for all servers that are reached by URL and have no
// Authorization header, in order.
func SignInStates(c *config.Config, version string) []SignInState {
	var list []SignInState
	for _, server := range c.Servers {
		if state, signsIn := signInState(server, Principal(), version); signsIn {
			list = append(list, state)
		}
	}
	return list
}

// signInState returns the state of a principal's sign-in to one server. It returns false
// if the server is not one that is signed in to.
func signInState(server config.Server, principal, version string) (state SignInState, signsIn bool) {
	source, err := SignIn(server, principal, version, func(string) {})
	if source == nil && err == nil {
		return SignInState{}, false
	}
	state = SignInState{ServerID: server.ID, URL: server.URL}
	if err == nil {
		state.State, err = source.State()
	}
	if err != nil {
		state.Problem = err.Error()
	}
	return state, true
}
