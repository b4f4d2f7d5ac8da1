package upstreams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Login signs in to one server.
type Login struct {
	config    *config.Config
	server    config.Server // with its references resolved
	source    *oauth.Source
	principal string
	version   string // Airlock's own
	by        audit.Identity
	log       *audit.Log // nil: the log is opened for one record
	state     *state.State
}

// OpenLogin prepares a sign-in to a server for this user or for a principal that calls over HTTP
// (caller.Caller.Name), and passes it to use. It resolves only the credentials of this server.
func OpenLogin(ctx context.Context, c *config.Config, serverID, principal, version string,
	use func(*Login) error) error {
	if principal == "" {
		principal = setup.Principal()
	}
	return state.With(c, version, func(s *state.State) error {
		l := &Login{config: c, principal: principal, version: version,
			by: audit.Identity{Principal: setup.Principal()}, state: s}
		if err := l.open(ctx, serverID, func(string) {}); err != nil {
			return err
		}
		return use(l)
	})
}

// open finds the server and makes its source. hold is called with each credential.
func (l *Login) open(ctx context.Context, serverID string, hold func(credential string)) error {
	c := l.config
	at := slices.IndexFunc(c.Servers, func(s config.Server) bool { return s.ID == serverID })
	if at < 0 {
		return NoSuchServer(c, serverID)
	}
	only := *c
	only.Servers, only.Embeddings.Key = []config.Server{c.Servers[at]}, secret.New("")
	resolved, err := credentials.Resolve(ctx, &only)
	if err != nil {
		return err
	}
	l.server = resolved.Servers[0]
	if l.source, err = l.state.SignIn(l.server, l.principal, hold); err != nil {
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
	"all callers share one sign-in to this server, and only the user who runs Airlock can sign in")

// NoSuchServer returns an error that names the servers of a configuration.
func NoSuchServer(c *config.Config, serverID string) error {
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
	return signed, errors.Join(l.record(ctx, what), l.state.RequestRefresh(ctx))
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
	directory, err := state.ListsDirectory()
	if err != nil {
		return 0, err
	}
	return l.connect(ctx, l.source, directory)
}

func (l *Login) connect(ctx context.Context, credentials upstream.Credentials, cache string) (tools int, err error) {
	made := configOf(l.server)
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
		l.state.RequestRefresh(ctx))
}

// record writes an action of an operator to the audit log after it was done. So if the log cannot
// be written, the action is not undone.
func (l *Login) record(ctx context.Context, what string) error {
	record := audit.Record{Kind: audit.KindOperator, Identity: l.by, Act: audit.Act{ServerID: l.server.ID},
		Detail: what}
	if l.log != nil {
		return l.log.Append(ctx, record)
	}
	return state.WithLog(l.config, func(log *audit.Log) error { return log.Append(ctx, record) })
}

// signsInAs returns the principal whose sign-in the calls of a caller use.
func signsInAs(server config.Server, who caller.Caller) string {
	if IsPersonal(server) {
		return who.Name()
	}
	return setup.Principal()
}

// mayLogin reports whether a caller may sign in to a server: it has a personal sign-in there, or it
// is the user who runs Airlock.
func mayLogin(server config.Server, who caller.Caller) bool {
	o := server.Settings.OAuth
	return who.Name() == setup.Principal() || IsPersonal(server) &&
		(o == nil || oauth.Grant(o.Grant) == oauth.AuthorizationCode)
}

// OpenLogin prepares a sign-in of a caller to a server that it sees. If all callers share the
// sign-in, only the user who runs Airlock may sign in.
func (s *Servers) OpenLogin(ctx context.Context, who caller.Caller, serverID string) (*Login, error) {
	c := s.opts.Config()
	if _, seen := s.Snapshot(who).Server(serverID); !seen {
		return nil, NoSuchServer(&config.Config{}, serverID)
	}
	if server, found := s.configured(serverID); found && server.SignsIn() && !mayLogin(server, who) {
		return nil, &setup.Error{Err: errSharedSignIn,
			Advice: "on its machine: airlock login " + visible.Word(serverID)}
	}
	login := &Login{config: c, principal: who.Name(), version: s.catalog.opts.Version,
		by: audit.IdentityOf(who), log: s.opts.Log, state: s.opts.State}
	return login, login.open(ctx, serverID, func(credential string) { s.catalog.opts.Redactors.All.Hold(credential) })
}
