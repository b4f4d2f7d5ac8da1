package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// Limits of sign-ins to servers.
const (
	flowTime   = 10 * time.Minute // for the person, as airlock login waits
	inviteTime = 20 * time.Second // to learn where to sign in
)

// flowsSection is the sign-in to one server. It has no entry in the navigation.
func flowsSection() section {
	return section{path: "/servers", template: "flow", pages: []page{
		{pattern: "POST /servers/{server}/sign-in", scope: auth.ScopeRun, show: beginFlow},
		{pattern: "GET /servers/{server}/sign-in", scope: auth.ScopeRun, show: showFlow},
		{pattern: "GET /servers/{server}/sign-in/now", scope: auth.ScopeRun, show: showFlowNow},
		{pattern: "POST /servers/{server}/sign-in/address", scope: auth.ScopeRun, show: pasteAddress},
	}}
}

// flow is one authorization flow (OAuth 2.1, section 4.1) of a person. The browser comes back to the receiver of the
// daemon or the callback of broker/oauth, or the person pastes the address at which it has ended.
type flow struct {
	server  string
	invited chan struct{} // closed when the invitation is there
	ended   chan struct{} // closed when the sign-in is over
	pasted  chan string
	stop    context.CancelFunc
	public  *oauth.Receiver // of the answer; nil: broker/oauth listens on this machine

	mu         sync.Mutex // guards the fields below
	invitation *oauth.Invitation
	strange    bool   // the address that was pasted last does not belong to the sign-in
	tools      int    // after it
	account    string // as the authorization server names it
	problem    string // why the sign-in failed
}

var _ oauth.Remote = (*flow)(nil)

// Receiver implements oauth.Remote.
func (v *flow) Receiver() *oauth.Receiver { return v.public }

// Invite implements oauth.Person.
func (v *flow) Invite(_ context.Context, i oauth.Invitation) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.invitation = &i
	close(v.invited)
	return nil
}

// Paste implements oauth.Person.
func (v *flow) Paste(ctx context.Context) (string, error) {
	select {
	case text := <-v.pasted:
		return text, nil
	case <-ctx.Done():
		return "", io.EOF
	}
}

// OwnsBrowser implements oauth.Person. The browser of a console may be one of another user or machine.
func (v *flow) OwnsBrowser() bool { return false }

// Show implements oauth.Person.
func (v *flow) Show(s oauth.SignedIn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.account = s.Account
}

// Strange implements oauth.Person.
func (v *flow) Strange() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.strange = true
}

// flowKey identifies a flow by its session and server. No other session sees it.
type flowKey struct {
	session *session
	server  string
}

// flows are the current flows, and the last one of each session and server. Its methods are safe
// for concurrent use.
type flows struct {
	// ends a flow with the credential of its caller
	while   func(ctx context.Context, who caller.Caller) (context.Context, func())
	limiter *quota.Limiter
	work    sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	of     map[flowKey]*flow
	closed bool
}

func newFlows(while func(context.Context, caller.Caller) (context.Context, func())) *flows {
	return &flows{while: while, limiter: quota.New(quota.For(quota.SignIns)), of: map[flowKey]*flow{}}
}

var errManyFlows = &refusal{http.StatusServiceUnavailable, "Too many people sign in to servers at once.",
	"Try again later."}

// begin starts a flow in the background. It stops and replaces an earlier flow of the session to
// the same server.
func (all *flows) begin(ctx context.Context, who caller.Caller, key flowKey, login *upstreams.Login,
	public *oauth.Receiver) (*flow, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), flowTime)
	v := &flow{server: key.server, invited: make(chan struct{}), ended: make(chan struct{}),
		pasted: make(chan string, 1), stop: stop, public: public}
	all.mu.Lock()
	defer all.mu.Unlock()
	if earlier := all.of[key]; earlier != nil {
		earlier.stop()
		<-earlier.ended
	}
	unit, err := all.limiter.Take(key.session.account, 1)
	if err != nil || all.closed {
		unit.Release()
		stop()
		return nil, errManyFlows
	}
	all.of[key] = v
	all.work.Go(func() {
		defer unit.Release()
		defer stop()
		defer close(v.ended)
		ctx, leave := all.while(ctx, who)
		defer leave()
		v.goOn(ctx, login)
	})
	return v, nil
}

// endOf ends the flows of a session that is over.
func (all *flows) endOf(s *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for key, v := range all.of {
		if key.session == s {
			v.stop()
			delete(all.of, key)
		}
	}
}

func (all *flows) find(key flowKey) *flow {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.of[key]
}

// close stops all flows and waits for them.
func (all *flows) close() {
	all.mu.Lock()
	all.closed = true
	for _, v := range all.of {
		v.stop()
	}
	all.mu.Unlock()
	all.work.Wait()
}

func (v *flow) isOver() bool {
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// goOn signs in and lists the tools of the server.
func (v *flow) goOn(ctx context.Context, login *upstreams.Login) {
	_, err := login.SignsIn(ctx, v, nil)
	tools := 0
	if err == nil {
		tools, err = login.Tools(ctx)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tools = tools
	if err != nil {
		v.problem = err.Error()
	}
}

// beginFlow starts a sign-in and waits for its invitation.
func beginFlow(c *Console, q *query) (view, error) {
	login, err := loginTo(c, q)
	if err != nil {
		return view{}, err
	}
	server := q.PathValue("server")
	v, err := c.flows.begin(q.Context(), q.who, flowKey{q.session, server}, login, c.opts.System.Receiver())
	if err != nil {
		return view{}, err
	}
	limited, cancel := context.WithTimeout(q.Context(), inviteTime)
	defer cancel()
	select {
	case <-v.invited:
	case <-v.ended:
	case <-limited.Done(): // the page goes on waiting
	}
	return view{redirect: serverPath(server, "/sign-in")}, nil
}

// shownFlow is the data of the page of a flow.
type shownFlow struct {
	Server     string
	Path       string // of its addresses
	Over       bool
	Problem    string
	Tools      int
	Account    string
	Strange    bool
	Invitation *oauth.Invitation
}

func showFlow(c *Console, q *query) (view, error) {
	server := q.PathValue("server")
	v := c.flows.find(flowKey{q.session, server})
	if v == nil {
		return view{redirect: "/servers"}, nil
	}
	over := v.isOver() // read first: the other fields of a finished flow do not change
	v.mu.Lock()
	defer v.mu.Unlock()
	shown := shownFlow{
		Server: server, Path: serverPath(server, "/sign-in"), Over: over,
		Problem: c.opts.System.Gate().Sentence(v.problem),
		Tools:   v.tools, Account: v.account, Strange: v.strange, Invitation: v.invitation,
	}
	return view{title: "Sign in to " + server, data: shown}, nil
}

func showFlowNow(c *Console, q *query) (view, error) {
	v, err := showFlow(c, q)
	v.part = "now"
	return v, err
}

// pasteAddress takes the address of a page that the browser could not show.
func pasteAddress(c *Console, q *query) (view, error) {
	server := q.PathValue("server")
	v := c.flows.find(flowKey{q.session, server})
	if v == nil || v.isOver() {
		return view{redirect: "/servers"}, nil
	}
	v.mu.Lock()
	v.strange = false
	v.mu.Unlock()
	select {
	case v.pasted <- q.PostForm.Get("address"):
	case <-v.ended:
	case <-q.Context().Done():
		return view{}, errors.New("the browser has gone")
	}
	return view{redirect: serverPath(server, "/sign-in")}, nil
}
