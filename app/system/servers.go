package system

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// ServerState is how a server is for a caller.
type ServerState struct {
	ID    string
	Place string // the host of its URL, or the name of its program
	Tools int
	// Problem, Unreachable, Retrying and Warnings are as catalog.Server has them.
	Problem, Unreachable string
	Retrying             bool
	Warnings             []string
	// SignIn is how the sign-in is that the caller's calls use; nil where it has no sign-in.
	SignIn *SignInState
	// Personal says that the sign-in is the caller's own, which OpenLogin makes and ends.
	Personal bool
}

// ServerStates returns how the servers are that a caller sees, in order.
func (s *System) ServerStates(who caller.Caller) []ServerState {
	list := []ServerState{}
	for _, server := range s.Snapshot(who).Servers() {
		list = append(list, s.serverState(who, server))
	}
	return list
}

// ServerState returns how one server is that a caller sees; false where there is none.
func (s *System) ServerState(who caller.Caller, serverID string) (ServerState, bool) {
	server, found := s.Snapshot(who).Server(serverID)
	if !found {
		return ServerState{}, false
	}
	return s.serverState(who, server), true
}

func (s *System) serverState(who caller.Caller, server catalog.Server) ServerState {
	state := ServerState{
		ID: server.ID, Tools: len(server.Tools), Problem: server.Problem, Unreachable: server.Unreachable, Retrying: server.Retrying, Warnings: server.Warnings,
	}
	configured, found := s.configured(server.ID)
	if !found {
		return state
	}
	state.Place = filepath.Base(configured.Command)
	if configured.URL != "" {
		state.Place = ""
		if address, err := url.Parse(configured.URL); err == nil {
			state.Place = address.Host // the rest may have credentials in it
		}
	}
	if signIn, signsIn := signInState(configured, signsInAs(configured, who), s.opts.Version); signsIn {
		signIn.Problem = s.opts.gate.all.Text(signIn.Problem)
		state.SignIn, state.Personal = &signIn, mayLogin(configured, who)
	}
	return state
}

// configured returns a server of the configuration, its references looked up.
func (s *System) configured(serverID string) (config.Server, bool) {
	servers := s.catalog.config.Servers
	at := slices.IndexFunc(servers, func(c config.Server) bool { return c.ID == serverID })
	if at < 0 {
		return config.Server{}, false
	}
	return servers[at], true
}

// signsInAs names whose sign-in the calls of a caller use.
func signsInAs(server config.Server, who caller.Caller) string {
	if isPersonal(server) {
		return who.Name()
	}
	return Principal()
}

// mayLogin reports whether a caller signs in to a server for its own calls alone, or is
// the user whom Airlock runs for.
func mayLogin(server config.Server, who caller.Caller) bool {
	o := server.Settings.OAuth
	return who.Name() == Principal() || isPersonal(server) && (o == nil || oauth.Grant(o.Grant) == oauth.AuthorizationCode)
}

// OpenLogin prepares a sign-in of a caller to a server that it sees, for the caller's own
// calls. Where all callers share one sign-in, only the user whom Airlock runs for may.
func (s *System) OpenLogin(ctx context.Context, who caller.Caller, serverID string) (*Login, error) {
	c := s.Config()
	if _, seen := s.Snapshot(who).Server(serverID); !seen {
		return nil, noSuchServer(&config.Config{}, serverID)
	}
	if server, found := s.configured(serverID); found && server.SignsIn() && !mayLogin(server, who) {
		return nil, &SetupError{errSharedSignIn, "on its machine: airlock login " + serverID}
	}
	login := &Login{config: c, principal: who.Name(), version: s.opts.Version, by: identityOf(who), log: s.log}
	return login, login.open(ctx, serverID, func(credential string) { s.opts.gate.all.Hold(credential) })
}

// AskServer asks one server for its tools now, connecting it where it is not, and puts
// them into use. It returns an error that says why it could not be asked.
func (s *System) AskServer(ctx context.Context, serverID string) error {
	if s.catalog.upstreams == nil {
		return nil
	}
	err := s.catalog.upstreams.Refresh(ctx, serverID)
	s.catalog.listAgain(context.WithoutCancel(ctx))
	return err
}

// Directories are where the system keeps what it keeps.
func (s *System) Directories() Directories { return s.directories }
