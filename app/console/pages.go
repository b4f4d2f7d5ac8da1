package console

import (
	"crypto/subtle"
	"fmt"
	"net/http"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// sections is the table of all pages, in the order of the navigation.
func sections() []section {
	return []section{
		overviewSection(),
		runsSection(),
		runSection(),
		questionsSection(),
		questionSection(),
		proposalSection(),
		serversSection(),
		flowsSection(),
		invitedSection(),
		toolsSection(),
		toolSection(),
		changesSection(),
		policiesSection(),
		configurationSection(),
		auditSection(),
		reportSection(),
		agentsSection(),
		agentSection(),
		remotesSection(),
		tokensSection(),
		healthSection(),
	}
}

// section is the pages of one file of this package.
type section struct {
	name     string // the entry in the navigation; empty for no entry
	path     string // the target of the entry
	scope    string // required for the entry; empty: none
	template string // templates/TEMPLATE.html
	pages    []page
}

// page is one pattern of URLs.
type page struct {
	pattern string // of http.ServeMux: "GET /runs/{run}"
	scope   string // required; empty: none
	show    func(c *Console, q *query) (view, error)
}

// query is a request of a caller who is signed in.
type query struct {
	*http.Request
	who     caller.Caller
	session *session
}

// may reports whether the caller has a scope.
func (q *query) may(scope string) bool { return scope == "" || q.who.Has(scope) }

// notify adds a notice to the next page of the session.
func (q *query) notify(format string, args ...any) { q.session.notify(fmt.Sprintf(format, args...)) }

// view is the answer of a page: data for its template, a redirect or a file.
type view struct {
	title    string
	data     any
	part     string    // the template to send without the frame; empty: all of the page
	status   int       // of HTTP; 0 is 200
	redirect string    // a local path, sent with status 303
	file     *download // sent unchanged
	stream   *stream   // the same, of any length
}

// route serves a page for callers who may see it.
func (c *Console) route(s section, p page) {
	c.mux.HandleFunc(p.pattern, func(w http.ResponseWriter, r *http.Request) {
		q, err := c.query(r)
		if err != nil {
			c.toSignIn(w, r, err)
			return
		}
		shown, err := c.show(p, q)
		if err != nil {
			c.refuse(w, q, err)
			return
		}
		c.answer(w, q, s.template, shown)
	})
}

// show returns the view of a page if the caller may see it. A POST must have the form token of
// the session.
func (c *Console) show(p page, q *query) (view, error) {
	if !q.may(p.scope) {
		return view{}, &auth.ScopeError{Scope: p.scope}
	}
	if p.scope == auth.ScopeAudit && !q.who.May(caller.People, caller.See, allLog) {
		return view{}, errOneProfile
	}
	if q.Method == http.MethodPost {
		if err := q.ParseForm(); err != nil {
			return view{}, badForm(err)
		}
		if subtle.ConstantTimeCompare([]byte(q.PostForm.Get("csrf")), []byte(q.session.form)) != 1 {
			return view{}, errForeignForm
		}
	}
	return p.show(c, q)
}

// query returns a request with its session and caller.
func (c *Console) query(r *http.Request) (*query, error) {
	s, err := c.signedIn(r)
	if err != nil {
		return nil, err
	}
	who, err := c.callerOf(r.Context(), s)
	if err != nil {
		return nil, err
	}
	return &query{Request: r, who: who, session: s}, nil
}
