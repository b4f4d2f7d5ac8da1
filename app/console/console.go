// Package console is the web pages for people that airlock serve shows at "/": Go
// templates, with htmx for live parts, and no build step. A signed-in person has the rights
// of their token. A page that they may not see is neither linked nor served.
//
// # How a page is added
//
// One file NAME.go with a function that returns a section, one file
// templates/NAME.html, and one row in the table sections (pages.go). A section names
// its template, its entry in the navigation and its addresses, each with the
// scope that it needs and the function that makes its view. health.go with
// templates/health.html is the smallest one.
//
//   - A template defines "content", which is rendered inside the frame, and further
//     templates if it needs them. view.part names a template that is sent without the
//     frame: htmx requests it with hx-get to keep a part of a page live.
//   - A form has method="post" and {{template "csrf" $}} in it. Its page is a "POST …"
//     pattern. It calls query.notify with a sentence for the next page and answers with
//     view.redirect, a local path. The CSRF token is checked before the page is called.
//     A GET page changes nothing.
//   - Every text from outside goes through {{line .X}} (one line) or {{lines .X}}
//     (keeps line breaks), which make hidden characters visible, or {{clip 200 .X}}, and
//     then through html/template. A page has no inline style and no inline script.
//   - An error is a refusal (refuse.go) or is logged and shown as one sentence.
package console

import (
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// Options are the options of New. All but the last five are required.
type Options struct {
	System    *system.System
	Lists     *listing.Lists
	Approvals *approval.Desk
	Agents    Agents  // stays open until the console is closed
	Remotes   Remotes // likewise
	Tokens    Tokens  // likewise
	// Identify returns the owner of a token, with the errors of auth.Authenticator.
	Identify func(ctx context.Context, token secret.Value) (caller.Caller, error)
	// OpenID signs people in with OpenID Connect. If it is nil, nobody can sign in that way. URL returns the URL of the
	// console; OpenID requires it.
	OpenID OpenIDSignIn
	URL    func() string
	// Roles returns the roles of the owner of a link; nil: none.
	Roles func(who caller.Caller) []string
	// While returns a context that ends when a caller may not act any more; nil: none ends.
	While  func(ctx context.Context, who caller.Caller) (_ context.Context, stop func())
	Status func(ctx context.Context) Status
	// Hosts are accepted names in the Host header, besides those of the loopback interface.
	Hosts []string
	// Clean removes secrets from texts that runs have left; nil leaves them as they are.
	Clean func(text string) string
	// Secure reports that browsers reach the console over TLS. Its cookie is then bound to
	// TLS.
	Secure bool
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Status is the state of the daemon.
type Status struct {
	State   string // starting, ready or draining
	Version string
	URL     string
	Since   time.Time
	Hosts   int // connected through the socket
	Runs    int // in progress

	Sandboxes, Working, Waiting int    // kept ready; at work; runs that wait for one
	Problem                     string // why runs cannot be made now; empty if they can
	Pending, PendingHint        string // why the configuration as it is now is not in force; empty if it is
}

// Console is the pages. Its methods are safe for concurrent use.
type Console struct {
	opts      Options
	node      *cluster.Node // this process in its cluster; nil: there is one process
	guarded   http.Handler  // the handler of requests that passed the cross-origin check
	mux       *http.ServeMux
	templates map[string]*template.Template // by the names of their files
	sections  []section
	sessions  *sessions
	links     *links
	asks      askLinks
	failures  *failures
	flows     *flows
	openID    *openID    // nil: there is no such sign-in
	verifying sync.Mutex // held while the audit log is verified
}

// New returns the console of a system.
func New(opts Options) (*Console, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.While == nil {
		opts.While = func(ctx context.Context, _ caller.Caller) (context.Context, func()) { return ctx, func() {} }
	}
	if opts.Clean == nil {
		opts.Clean = func(text string) string { return text }
	}
	var node *cluster.Node
	if opts.System != nil { // tests have none
		node = opts.System.Node()
	}
	c := &Console{opts: opts, node: node, mux: http.NewServeMux(), sections: sections(),
		links:    newLinks(opts.Now, node.Mark),
		failures: newFailures(opts.Now), flows: newFlows(opts.While)}
	c.sessions = newSessions(opts.Now, node.Mark, c.ended)
	var err error
	if opts.OpenID != nil {
		if c.openID, err = newOpenID(opts.OpenID, node.Secret("sign-in with OpenID Connect")); err != nil {
			return nil, err
		}
	}
	if c.templates, err = parseTemplates(); err != nil {
		return nil, err
	}
	c.guarded = server.Guard(opts.Hosts, nil, http.HandlerFunc(c.serve))
	c.mux.HandleFunc("GET /assets/{name}", c.asset)
	c.signInRoutes()
	c.receiverRoutes()
	for _, s := range c.sections {
		for _, p := range s.pages {
			c.route(s, p)
		}
	}
	return c, nil
}

// Close ends the current sign-ins to servers and waits for them. It may be called twice.
func (c *Console) Close() error {
	c.flows.close()
	return nil
}

// ServeHTTP answers one request. It refuses requests with a foreign Host header and requests
// from pages of other origins, even of those that may use the API.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	c.guarded.ServeHTTP(w, r)
}

func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	if _, pattern := c.mux.Handler(r); pattern == "" {
		c.notRouted(w, r)
		return
	}
	if c.forwarded(w, r) {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	c.mux.ServeHTTP(w, r)
}

// maxForm is the maximum size of a form in bytes.
const maxForm = 64 << 10
