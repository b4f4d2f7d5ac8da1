package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// serversSection shows the state of the servers, and the caller's sign-ins to them.
func serversSection() section {
	return section{name: "Servers", path: "/servers", scope: auth.ScopeRun, template: "servers", pages: []page{
		{pattern: "GET /servers", scope: auth.ScopeRun, show: showServers},
		{pattern: "GET /servers/now", scope: auth.ScopeRun, show: showServersNow},
		{pattern: "POST /servers/{server}/ask", scope: auth.ScopeAdmin, show: askServer},
		{pattern: "POST /servers/{server}/restart", scope: auth.ScopeAdmin, show: restartServer},
		{pattern: "POST /servers/{server}/disable", scope: auth.ScopeAdmin, show: editServer},
		{pattern: "POST /servers/{server}/enable", scope: auth.ScopeAdmin, show: editServer},
		{pattern: "POST /servers/{server}/remove", scope: auth.ScopeAdmin, show: editServer},
		{pattern: "POST /servers/add", scope: auth.ScopeAdmin, show: addServer},
		{pattern: "GET /servers/{server}/log", scope: auth.ScopeAdmin, show: showServerLog},
		{pattern: "POST /servers/{server}/sign-out", scope: auth.ScopeRun, show: signOutOfServer},
	}}
}

// shownServer is one row.
type shownServer struct {
	upstreams.ServerState
	Starting bool
	Node     string // of a cluster; empty without one
	At       string // the query of the paths of the row, with the node
}

// State returns the state in one word.
func (s shownServer) State() string { return s.Word() }

func showServers(c *Console, q *query) (view, error) {
	var list struct {
		Servers  []shownServer
		Disabled []string // shown to those who may enable them
		Waiting  []string // servers of the file that are not in force; shown to those who may see the file
		// Pending is why the file is not in force, and PendingHint what to do; empty if it is, or if the caller may
		// not know.
		Pending, PendingHint string
		MayAsk               bool
		MayAdd               bool
		Missing              string // a sentence about nodes that do not answer; may be empty
		Nodes                bool   // the rows have nodes
		Here                 string // the address of the live part
	}
	list.Here = "/servers/now"
	node := q.URL.Query().Get(nodeField)
	if node != "" {
		list.Here += "?" + url.Values{nodeField: {node}}.Encode()
	}
	if c.node == nil || node != "" {
		for _, state := range c.opts.System.ServerStates(q.who) {
			list.Servers = append(list.Servers, c.shownServer("", state))
		}
	} else {
		servers, unanswered, err := c.opts.Lists.Servers(q.Context(), q.who)
		if err != nil {
			return view{}, err
		}
		for _, s := range servers {
			list.Servers = append(list.Servers, c.shownServer(s.Node, s.ServerState))
		}
		slices.SortStableFunc(list.Servers, func(a, b shownServer) int { return cmp.Compare(a.ID, b.ID) })
		list.Nodes, list.Missing = true, listing.Missing(unanswered)
	}
	list.MayAsk, list.MayAdd = q.may(auth.ScopeAdmin), rules.MayConfirm(q.who)
	if list.MayAsk {
		list.Disabled = c.opts.System.Config().Disabled()
	}
	if q.who.May(caller.People, caller.See, configuration) {
		list.Waiting = c.opts.System.WaitingServers(q.who)
		pending, _ := c.opts.System.Pending()
		gate := c.opts.System.Gate()
		list.Pending, list.PendingHint = gate.Text(pending.Text), gate.Text(pending.Hint)
	}
	return view{title: "Servers", data: list}, nil
}

func (c *Console) shownServer(node string, state upstreams.ServerState) shownServer {
	s := shownServer{ServerState: state, Starting: state.Problem == catalog.StillStarting, Node: node}
	if node != "" && node != c.node.Name() {
		s.At = "?" + url.Values{nodeField: {c.node.Reference(node)}}.Encode()
	}
	return s
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
	if err := c.opts.System.AskServer(ctx, q.who, state.ID); err != nil {
		q.notify("%s did not answer: %s", state.ID, c.opts.System.Gate().Sentence(err.Error()))
	} else {
		q.notify("%s has answered.", state.ID)
	}
	return view{redirect: "/servers"}, nil
}

// restartServer connects a server anew.
func restartServer(c *Console, q *query) (view, error) {
	state, err := serverOf(c, q)
	if err != nil {
		return view{}, err
	}
	if err := c.opts.System.RestartServer(q.Context(), q.who, state.ID); err != nil {
		return view{}, err
	}
	q.notify("%s is connected anew. Calls under way are finished first.", state.ID)
	return view{redirect: "/servers"}, nil
}

// editServer enables, disables or removes the server in the path of a request in the configuration
// file. The watcher of the file puts the change in force.
func editServer(c *Console, q *query) (view, error) {
	edit := config.ServerEdit{ID: q.PathValue("server")}
	disabled := strings.HasSuffix(q.URL.Path, "/disable")
	if edit.Remove = strings.HasSuffix(q.URL.Path, "/remove"); !edit.Remove {
		edit.Disabled = &disabled
	}
	return changeServer(c, q, edit)
}

// addServer adds a server to the configuration file.
func addServer(c *Console, q *query) (view, error) {
	if !rules.MayConfirm(q.who) {
		return view{}, &refusal{http.StatusForbidden,
			"Only a person who signed in with a link of airlock console may add " +
				"servers.", "airlock servers add"}
	}
	entry := &config.ServerEntry{}
	address, command := q.PostForm.Get("url"), strings.Fields(q.PostForm.Get("command"))
	switch {
	case (address == "") == (len(command) == 0) || q.PostForm.Get("name") == "":
		q.notify("A server has a name, and either a command or an address.")
		return view{redirect: "/servers"}, nil
	case address != "":
		entry.URL = address
	default:
		entry.Command, entry.Args = command[0], command[1:]
	}
	return changeServer(c, q, config.ServerEdit{ID: q.PostForm.Get("name"), Add: entry})
}

func changeServer(c *Console, q *query, edit config.ServerEdit) (view, error) {
	confirmed, err := c.opts.System.EditServer(q.Context(), q.who, edit)
	var advised interface{ Hint() string }
	switch {
	case errors.As(err, &advised):
		q.notify("Nothing was changed: %s", c.opts.System.Gate().Sentence(err.Error()))
	case err != nil:
		return view{}, err
	case !confirmed:
		q.notify("The file was changed. It has other changes that nobody has confirmed, so nothing of it is in force " +
			"yet: airlock trust.")
	case edit.Add != nil:
		q.notify("%s is added. Its tools are withheld until you have accepted them.", edit.ID)
	default:
		q.notify("The configuration is changed for %s, and in force in a moment.", edit.ID)
	}
	return view{redirect: "/servers"}, nil
}

// showServerLog shows what a server wrote to stderr.
func showServerLog(c *Console, q *query) (view, error) {
	state, err := serverOf(c, q)
	if err != nil {
		return view{}, err
	}
	lines, err := c.opts.System.ServerLog(q.who, state.ID)
	if err != nil {
		return view{}, err
	}
	return view{title: "Log of " + state.ID, part: "log", data: strings.Join(lines, "\n")}, nil
}

// serverOf returns the server in the path of a request. If the caller may not see it, it is not
// found.
func serverOf(c *Console, q *query) (upstreams.ServerState, error) {
	state, found := c.opts.System.ServerState(q.who, q.PathValue("server"))
	if !found {
		return state, notFound("server")
	}
	return state, nil
}

// loginTo prepares a sign-in of the caller, or of the refusal of one.
func loginTo(c *Console, q *query) (*upstreams.Login, error) {
	state, err := serverOf(c, q)
	if err != nil {
		return nil, err
	}
	login, err := c.opts.System.OpenLogin(q.Context(), q.who, state.ID)
	if setup, ok := errors.AsType[*setup.Error](err); ok {
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
		q.notify("You were not signed in to %s.", server)
	case out.NotRevoked != "":
		q.notify("You are signed out of %s here, but the tokens are not revoked: %s. Remove Airlock's access in the "+
			"account settings of the service.",
			server, c.opts.System.Gate().Sentence(out.NotRevoked))
	default:
		q.notify("You are signed out of %s.", server)
	}
	return view{redirect: "/servers"}, nil
}

// serverPath returns a path of a server's pages.
func serverPath(serverID, rest string) string { return "/servers/" + url.PathEscape(serverID) + rest }
