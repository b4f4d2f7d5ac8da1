package upstreams

import (
	"net/url"
	"path/filepath"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
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
func (s *Servers) ServerStates(who caller.Caller) []ServerState {
	list := []ServerState{}
	for _, server := range s.Snapshot(who).Servers() {
		list = append(list, s.serverState(who, server))
	}
	return list
}

// ServerState returns the state of one server. It returns false if the caller does not see it.
func (s *Servers) ServerState(who caller.Caller, serverID string) (ServerState, bool) {
	server, found := s.Snapshot(who).Server(serverID)
	if !found {
		return ServerState{}, false
	}
	return s.serverState(who, server), true
}

func (s *Servers) serverState(who caller.Caller, server catalog.Server) ServerState {
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
	if signIn, signsIn := s.opts.State.SignInState(configured, signsInAs(configured, who)); signsIn {
		signIn.Problem = s.catalog.opts.Redactors.All.Text(signIn.Problem)
		state.SignIn, state.Personal = &signIn, mayLogin(configured, who)
	}
	return state
}

// configured returns a server of the configuration with its references resolved.
func (s *Servers) configured(serverID string) (config.Server, bool) {
	return s.catalog.Config().Server(serverID)
}

// Tried returns what the server on trial has done, also after Close.
func (s *Servers) Tried() contained.State {
	return s.catalog.Contained().State(s.catalog.opts.Trial.Server)
}
