package console

import (
	"net/http"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/broker/oauth"
)

// invitedSection is the start page of a sign-in to a server that a call or a page waits for. It has no entry in the
// navigation. A sign-in belongs to its principal: nobody else sees or begins it, also not with its address.
func invitedSection() section {
	return section{path: oauth.ReceiverPath, template: "invited", pages: []page{
		{pattern: "GET " + oauth.ReceiverPath + "{id}", scope: auth.ScopeRun, show: showInvited},
	}}
}

var errNoSignIn = &refusal{http.StatusNotFound, "You have no such sign-in under way.",
	"It ended, or another user began it. Repeat the call that needs it"}

// showInvited shows where the sign-in leads.
func showInvited(c *Console, q *query) (view, error) {
	if receiver := c.opts.System.Receiver(); receiver != nil {
		if i, found := receiver.Invitation(q.PathValue("id"), q.who.Name()); found {
			return view{title: "Sign in to a server", data: i}, nil
		}
	}
	return view{}, errNoSignIn
}

// receiverRoutes registers the pages of a sign-in that redirect to the authorization server and back.
func (c *Console) receiverRoutes() {
	if c.opts.System == nil || c.opts.System.Receiver() == nil {
		return
	}
	receiver := c.opts.System.Receiver()
	c.mux.HandleFunc("GET "+oauth.BeginPath+"{id}", func(w http.ResponseWriter, r *http.Request) {
		q, err := c.query(r)
		switch {
		case err != nil:
			c.toSignIn(w, r, err)
		case !q.may(auth.ScopeRun):
			c.refuse(w, q, &auth.ScopeError{Scope: auth.ScopeRun})
		case !receiver.Begin(w, r, r.PathValue("id"), q.who.Name()):
			c.refuse(w, q, errNoSignIn)
		}
	})
	// The session cookie is strict, so it does not come with the redirect of the authorization server.
	for _, pattern := range []string{"callback", "callback/{issuer}"} {
		c.mux.HandleFunc("GET "+oauth.ReceiverPath+pattern, receiver.Answer)
	}
}

// signInOfPath returns the ID of the sign-in of a path, or an empty text.
func signInOfPath(path string) string {
	if id, ok := strings.CutPrefix(path, oauth.BeginPath); ok {
		return id
	}
	id, _ := strings.CutPrefix(path, oauth.ReceiverPath)
	return id
}
