package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/catalog"
)

// serversSection shows the state of the servers, and the caller's sign-ins to them.
func serversSection() section {
	return section{name: "Servers", path: "/servers", scope: auth.ScopeRun, template: "servers", pages: []page{
		{pattern: "GET /servers", scope: auth.ScopeRun, show: showServers},
		{pattern: "GET /servers/now", scope: auth.ScopeRun, show: showServersNow},
		{pattern: "POST /servers/{server}/ask", scope: auth.ScopeAdmin, show: askServer},
		{pattern: "POST /servers/{server}/sign-out", scope: auth.ScopeRun, show: signOutOfServer},
	}}
}

// shownServer is one row.
type shownServer struct {
	system.ServerState
	Starting bool
}

// State returns the state in one word.
func (s shownServer) State() string {
	switch {
	case s.Starting:
		return "starting"
	case s.Problem != "":
		return "missing"
	case s.Unreachable != "":
		return "unreachable"
	}
	return "connected"
}

func showServers(c *Console, q *query) (view, error) {
	var list struct {
		Servers []shownServer
		MayAsk  bool
	}
	for _, state := range c.opts.System.ServerStates(q.who) {
		list.Servers = append(list.Servers, shownServer{state, state.Problem == catalog.StillStarting})
	}
	list.MayAsk = q.may(auth.ScopeAdmin)
	return view{title: "Servers", data: list}, nil
}

func showServersNow(c *Console, q *query) (view, error) {
	v, err := showServers(c, q)
	v.part = "list"
	return v, err
}

// askTime is the time limit of askServer.
const askTime = 20 * time.Second

// askServer requests a server's tools again.
func askServer(c *Console, q *query) (view, error) {
	state, err := serverOf(c, q)
	if err != nil {
		return view{}, err
	}
	ctx, cancel := context.WithTimeout(q.Context(), askTime)
	defer cancel()
	if err := c.opts.System.AskServer(ctx, state.ID); err != nil {
		q.tell("%s did not answer: %s", state.ID, c.opts.System.Gate().Sentence(err.Error()))
	} else {
		q.tell("%s has answered.", state.ID)
	}
	return view{redirect: "/servers"}, nil
}

// serverOf returns the server in the path of a request. If the caller may not see it, it is not
// found.
func serverOf(c *Console, q *query) (system.ServerState, error) {
	state, found := c.opts.System.ServerState(q.who, q.PathValue("server"))
	if !found {
		return state, notFound("server")
	}
	return state, nil
}

// loginTo prepares a sign-in of the caller, or of the refusal of one.
func loginTo(c *Console, q *query) (*system.Login, error) {
	state, err := serverOf(c, q)
	if err != nil {
		return nil, err
	}
	login, err := c.opts.System.OpenLogin(q.Context(), q.who, state.ID)
	var setup *system.SetupError
	if errors.As(err, &setup) {
		return nil, &refusal{http.StatusConflict, c.opts.System.Gate().Sentence(setup.Error()), setup.Hint()}
	}
	return login, err
}

func signOutOfServer(c *Console, q *query) (view, error) {
	login, err := loginTo(c, q)
	if err != nil {
		return view{}, err
	}
	var out oauth.LoggedOut
	if out, err = login.SignsOut(q.Context()); err != nil {
		return view{}, err
	}
	server := q.PathValue("server")
	switch {
	case !out.WasSignedIn:
		q.tell("You were not signed in to %s.", server)
	case out.NotRevoked != "":
		q.tell("You are signed out of %s here, but the tokens are not revoked: %s. Remove Airlock's access in the account settings of the service.",
			server, c.opts.System.Gate().Sentence(out.NotRevoked))
	default:
		q.tell("You are signed out of %s.", server)
	}
	return view{redirect: "/servers"}, nil
}

// serverPath returns a path of a server's pages.
func serverPath(serverID, rest string) string { return "/servers/" + url.PathEscape(serverID) + rest }
