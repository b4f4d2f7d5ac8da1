package system

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// ServerState is the state of a server as a caller sees it.
type ServerState struct {
	ID    string
	Place string // the host of its URL, or the name of its program
	Tools int
	// Withheld is how many tools, resources and prompts have a definition that nobody has accepted.
	Withheld int
	// Problem, Unreachable, Retrying and Warnings are as catalog.Server has them.
	Problem, Unreachable string
	Retrying             bool
	Warnings             []string
	// SignIn is the state of the sign-in that the caller's calls use, or nil if the server has
	// none.
	SignIn *state.SignInState
	// Local is set if the server is a process of this host with the rights of Airlock's user.
	Local bool
	// Contained describes the sandbox of the server, or is nil if it has none.
	Contained *Containment
	// Personal reports whether the caller may sign in and out with OpenLogin.
	Personal bool
}

// Containment is the sandbox of a server.
type Containment struct {
	MayReach []string // the hosts of its configuration, as NAME:PORT; the policies decide about each connection
	Mounts   []string // directories of this host; the writable ones end with " (writable)"
	contained.State
}

// ContainmentOf describes the sandbox of a configured server, without what it has done. It returns nil if the server
// has none.
func ContainmentOf(server config.Server) *Containment {
	box := server.Settings.Sandbox
	if box == nil {
		return nil
	}
	c := &Containment{}
	for _, host := range box.Network {
		c.MayReach = append(c.MayReach, host.String())
	}
	for _, m := range box.Mounts {
		text := m.Path
		if m.Writable {
			text += " (writable)"
		}
		if !runsc.MountsConfined() {
			text += " (its file server is not confined: this kernel has no Landlock)"
		}
		c.Mounts = append(c.Mounts, text)
	}
	return c
}

// Word returns the state in one word.
func (s ServerState) Word() string {
	switch {
	case s.Problem == catalog.StillStarting:
		return "starting"
	case s.Problem != "":
		return "missing"
	case s.Unreachable != "":
		return "unreachable"
	}
	return "connected"
}

// ServerStates returns the states of the servers that a caller sees, in order.
func (s *System) ServerStates(who caller.Caller) []ServerState {
	list := []ServerState{}
	for _, server := range s.Snapshot(who).Servers() {
		list = append(list, s.serverState(who, server))
	}
	return list
}

// ServerState returns the state of one server. It returns false if the caller does not see it.
func (s *System) ServerState(who caller.Caller, serverID string) (ServerState, bool) {
	server, found := s.Snapshot(who).Server(serverID)
	if !found {
		return ServerState{}, false
	}
	return s.serverState(who, server), true
}

func (s *System) serverState(who caller.Caller, server catalog.Server) ServerState {
	state := ServerState{
		ID: server.ID, Tools: len(server.Tools), Problem: server.Problem, Unreachable: server.Unreachable,
		Retrying: server.Retrying, Warnings: server.Warnings,
	}
	for _, tool := range slices.Concat(server.Tools, server.Features) {
		if tool.Withheld {
			state.Withheld++
		}
	}
	configured, found := s.configured(server.ID)
	if !found {
		return state
	}
	state.Place = filepath.Base(configured.Command)
	state.Contained = ContainmentOf(configured)
	state.Local = configured.URL == "" && state.Contained == nil
	if state.Contained != nil && s.catalog.Contained() != nil {
		state.Contained.State = s.catalog.Contained().State(server.ID)
	}
	if configured.URL != "" {
		state.Place = ""
		if address, err := url.Parse(configured.URL); err == nil {
			state.Place = address.Host // the rest may have credentials in it
		}
	}
	if signIn, signsIn := s.state.SignInState(configured, signsInAs(configured, who)); signsIn {
		signIn.Problem = s.opts.redactors.All.Text(signIn.Problem)
		state.SignIn, state.Personal = &signIn, mayLogin(configured, who)
	}
	return state
}

// WaitingServers returns the IDs of servers that the configuration file has and that are not in force, because the
// file waits for a person's confirmation or for a restart. It returns none to a caller who may not see the
// configuration.
func (s *System) WaitingServers(who caller.Caller) (waiting []string) {
	_, pending := s.Pending()
	if !pending || s.opts.Reread == nil ||
		!who.May(caller.People, caller.See, caller.Object{Kind: caller.Configuration}) {
		return nil
	}
	next, err := s.opts.Reread()
	if err != nil { // Pending has the reason
		return nil
	}
	for _, server := range next.Servers {
		if _, found := s.Config().Server(server.ID); !found {
			waiting = append(waiting, server.ID)
		}
	}
	return waiting
}

// configured returns a server of the configuration with its references resolved.
func (s *System) configured(serverID string) (config.Server, bool) {
	return s.catalog.Config().Server(serverID)
}

// signsInAs returns the principal whose sign-in the calls of a caller use.
func signsInAs(server config.Server, who caller.Caller) string {
	if upstreams.IsPersonal(server) {
		return who.Name()
	}
	return setup.Principal()
}

// mayLogin reports whether a caller may sign in to a server: it has a personal sign-in there, or it
// is the user who runs Airlock.
func mayLogin(server config.Server, who caller.Caller) bool {
	o := server.Settings.OAuth
	return who.Name() == setup.Principal() || upstreams.IsPersonal(server) &&
		(o == nil || oauth.Grant(o.Grant) == oauth.AuthorizationCode)
}

// OpenLogin prepares a sign-in of a caller to a server that it sees. If all callers share the
// sign-in, only the user who runs Airlock may sign in.
func (s *System) OpenLogin(ctx context.Context, who caller.Caller, serverID string) (*Login, error) {
	c := s.Config()
	if _, seen := s.Snapshot(who).Server(serverID); !seen {
		return nil, noSuchServer(&config.Config{}, serverID)
	}
	if server, found := s.configured(serverID); found && server.SignsIn() && !mayLogin(server, who) {
		return nil, &setup.Error{Err: errSharedSignIn,
			Advice: "on its machine: airlock login " + visible.Word(serverID)}
	}
	login := &Login{config: c, principal: who.Name(), version: s.opts.Version,
		by: identityOf(who), log: s.log, state: s.state}
	return login, login.open(ctx, serverID, func(credential string) { s.opts.redactors.All.Hold(credential) })
}

// AskServer asks one server for its tools, connecting to it if necessary, and updates the snapshot.
// It returns an error if the server does not answer, or if the caller may not change it.
func (s *System) AskServer(ctx context.Context, who caller.Caller, serverID string) error {
	if !s.mayChange(who, serverID) {
		return noSuchServer(&config.Config{}, serverID)
	}
	if s.catalog.Upstreams() == nil {
		return nil
	}
	err := s.catalog.Upstreams().Refresh(ctx, serverID)
	s.catalog.ListAgain(context.WithoutCancel(ctx))
	return err
}

// setup.Directories returns the directories of the system.
func (s *System) Directories() setup.Directories { return s.directories }
