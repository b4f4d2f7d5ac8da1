package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
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

// signedIn has the person sign in through the host if the server's error says that this is needed. It reports whether
// the call can be made again, and refuses that if the caller may no longer act.
func (a *attempt) signedIn(ctx context.Context, timeout *upstream.PausableTimeout, err error) (bool, *failure) {
	var needed *upstream.SignInError
	if a.broker.opts.SignIns == nil || !errors.As(err, &needed) || needed.Command == "" {
		return false, nil
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
		return false, nil
	}
	if !one.done {
		return false, nil
	}
	fail := a.inForce(ctx)
	return fail == nil, fail
}

// errNotSignedIn is the outcome of a sign-in that the person did not want or did not complete.
var errNotSignedIn = errors.New("the person has not signed in")

// signIn has the person behind the call sign in.
func (a *attempt) signIn(ctx context.Context) error {
	return a.broker.signIn(ctx, a.question(), a.run.identity.Caller, a.record(audit.KindApproval))
}

// SignIn has the person behind a run sign in to a server whose tools are not known without it. It returns when that is
// done, refused or has taken as long as an approval may, and at once if the host cannot ask anybody.
func (b *Broker) SignIn(ctx context.Context, run Run, serverID string) error {
	now := b.opts.Now()
	q := approval.Question{ID: telemetry.NewID("apr"), Asked: now,
		Expires: now.Add(b.admission.Rules().Limits.ApprovalTimeout), Asking: run.asking(""),
		Subject: approval.Subject{ServerID: serverID, ToolName: "sign-in", CodeHash: run.CodeHash}}
	record := audit.Record{Kind: audit.KindApproval, Identity: run.Recorded(), Act: audit.Act{ServerID: serverID}}
	return b.signIn(ctx, q, run.Caller, record)
}

// signIn signs a caller in and asks q meanwhile. The record is completed with the outcome.
func (b *Broker) signIn(ctx context.Context, q approval.Question, who caller.Caller, record audit.Record) error {
	host, ok := b.opts.Approver.(HostAsker)
	if b.opts.SignIns == nil || !ok || !host.AsksHost(q.SessionID) {
		return errNotSignedIn
	}
	ctx, cancel := context.WithDeadline(ctx, q.Expires)
	defer cancel()
	asking, stop := context.WithCancel(ctx)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer stop() // the sign-in has ended: the question is closed
	account, err := b.opts.SignIns.SignIn(ctx, who, q.ServerID, func(page, site string) {
		asked.Go(func() {
			if b.askToSignIn(asking, q, page, site) != nil && asking.Err() == nil {
				cancel()
			}
		})
	})
	record.Detail = fmt.Sprintf("%s: signed in through the host", q.ID)
	if account != "" {
		record.Detail += fmt.Sprintf(" as %q", account)
	}
	if err != nil {
		record.Detail = fmt.Sprintf("%s: not signed in: %v", q.ID, err)
	}
	record.Detail = b.opts.Redactor.Text(record.Detail)
	if failed := b.recorder.Note(context.WithoutCancel(ctx), record); failed != nil {
		b.opts.Logger.ErrorContext(ctx, "a sign-in could not be recorded", slog.Any(telemetry.KeyError, failed))
	}
	return err
}

// askToSignIn shows the person the page at which the sign-in begins. It returns nil if the person agrees to open it.
func (b *Broker) askToSignIn(ctx context.Context, q approval.Question, page, site string) error {
	shown, err := json.Marshal(map[string]string{"the browser goes on to": site})
	if err != nil {
		return err
	}
	q.Code, q.ClaimedLine, q.Rules, q.Approve, q.People = "", 0, []string{}, []string{}, 0
	q.Arguments = shown
	q.Elicitation = &approval.Elicitation{URL: page, SignIn: true}
	verdict, err := b.opts.Approver.Ask(ctx, q)
	if err == nil && verdict.Answer != approval.Yes {
		err = errNotSignedIn
	}
	return err
}
