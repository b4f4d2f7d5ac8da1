package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// SignIns lets people sign in to servers while calls wait. Its methods are safe for concurrent use.
type SignIns interface {
	// SignIn signs a caller in to a server and returns when that is done. It calls invite, at most once, with the
	// page at which the person begins and the site at which the person signs in. If ctx ends, so does the sign-in.
	// It returns an error at once if the caller cannot sign in with a browser on this machine.
	SignIn(ctx context.Context, who caller.Caller, serverID string, invite func(page, site string)) (account string,
		err error)
}

// signings are the sign-ins of a run. A run asks for each server once, and the calls that need it meanwhile wait for
// the same one.
type signings struct {
	mu sync.Mutex
	of map[string]*signing // by server
}

type signing struct {
	over chan struct{}
	done bool // the person has signed in; valid when over is closed
}

// begin returns the sign-in to a server, and whether the caller has to make it.
func (s *signings) begin(serverID string) (one *signing, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.of[serverID]; one != nil {
		return one, false
	}
	if s.of == nil {
		s.of = map[string]*signing{}
	}
	one = &signing{over: make(chan struct{})}
	s.of[serverID] = one
	return one, true
}

// callSignedIn calls the server. If the server needs a sign-in, the person is asked through the host, and the call is
// made again after it.
func (a *attempt) callSignedIn(ctx context.Context, timeout *upstream.PausableTimeout) (json.RawMessage, error) {
	result, err := a.callUpstream(ctx)
	var needed *upstream.SignInError
	if a.broker.opts.SignIns == nil || !errors.As(err, &needed) || needed.Command == "" {
		return result, err
	}
	timeout.Pause()
	defer timeout.Resume()
	one, first := a.run.signings.begin(a.tool.ServerID)
	if first {
		a.run.parked(func() { one.done = a.signIn(ctx) == nil })
		close(one.over)
	}
	select {
	case <-one.over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !one.done {
		return result, err
	}
	if fail := a.inForce(ctx); fail != nil {
		return nil, errors.New(fail.Message)
	}
	return a.callUpstream(ctx)
}

// errNotSignedIn is the outcome of a sign-in that the person did not want or did not complete.
var errNotSignedIn = errors.New("the person has not signed in")

// signIn has the person sign in. It returns when the sign-in is done, refused or has taken as long as an approval may.
func (a *attempt) signIn(ctx context.Context) error {
	q := a.question()
	ctx, cancel := context.WithDeadline(ctx, q.Expires)
	defer cancel()
	asking, stop := context.WithCancel(ctx)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer stop() // the sign-in has ended: the question is closed
	account, err := a.broker.opts.SignIns.SignIn(ctx, a.run.identity.Caller, a.tool.ServerID, func(page, site string) {
		asked.Go(func() {
			if a.askToSignIn(asking, q, page, site) != nil && asking.Err() == nil {
				cancel()
			}
		})
	})
	detail := fmt.Sprintf("%s: signed in at the server's request", q.ID)
	if account != "" {
		detail += fmt.Sprintf(" as %q", account)
	}
	if err != nil {
		detail = fmt.Sprintf("%s: not signed in: %v", q.ID, err)
	}
	(&relay{attempt: a}).note(context.WithoutCancel(ctx), detail, "")
	return err
}

// askToSignIn shows the person the page at which the sign-in begins. It returns nil if the person agrees to open it.
func (a *attempt) askToSignIn(ctx context.Context, q approval.Question, page, site string) error {
	shown, err := json.Marshal(map[string]string{"the browser goes on to": site})
	if err != nil {
		return err
	}
	q.Code, q.ClaimedLine, q.Rules, q.Approve, q.People = "", 0, []string{}, []string{}, 0
	q.Arguments = shown
	q.Elicitation = &approval.Elicitation{URL: page, SignIn: true}
	verdict, err := a.broker.opts.Approver.Ask(ctx, q)
	if err == nil && verdict.Answer != approval.Yes {
		err = errNotSignedIn
	}
	return err
}
