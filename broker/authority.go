package broker

import (
	"context"
	"errors"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// Authority decides whether callers may still act.
type Authority interface {
	// Check returns nil if the caller may act now. The error wraps caller.ErrEnded or
	// caller.ErrInactive if it may not; after any other error it must not act either.
	// Check is safe for concurrent use.
	Check(ctx context.Context, who caller.Caller) error
	// MayAct returns nil if this process may act at all, which a node of a cluster without a lease may not. It does
	// not wait, and is safe for concurrent use.
	MayAct() error
}

// localAuthority permits only callers without a credential.
type localAuthority struct{}

func (localAuthority) Check(_ context.Context, who caller.Caller) error {
	if len(who.Credentials) > 0 {
		return caller.ErrEnded
	}
	return nil
}

func (localAuthority) MayAct() error { return nil }

// inForce refuses a call if its caller may no longer act, or if the credential of the person who
// approved it has ended since. Nothing happens between this check and the record of the intent.
func (a *attempt) inForce(ctx context.Context) *failure {
	err := a.broker.opts.Authority.Check(ctx, a.run.identity.Caller)
	for _, approver := range a.verdict.Approvers {
		if failed := a.broker.opts.Authority.Check(ctx, approver); err == nil && failed != nil {
			if ctx.Err() != nil {
				return a.cut(ctx)
			}
			f := failf(errortype.ApprovalDenied,
				"the approval does not count: who gave it may not approve any more. Make the call again").because(
				failed)
			f.refused = true
			return f
		}
	}
	switch {
	case err == nil:
		return nil
	case Ended(err) != "":
		return notInForce(err)
	case ctx.Err() != nil:
		return a.cut(ctx)
	}
	f := unknownAuthority(err)
	f.refused = true
	return f
}

func unknownAuthority(err error) *failure {
	return failf(errortype.Sandbox,
		"it could not be looked up whether the caller may still act, so the call was not made").because(err).retryable()
}

// mayAct refuses a call after its intent was recorded, if this process must not act any more: it may have been stopped
// meanwhile, and replaced by another node.
func (a *attempt) mayAct(context.Context) *failure {
	if err := a.broker.opts.Authority.MayAct(); err != nil {
		return unknownAuthority(err)
	}
	return nil
}

// Ended returns the reason why the caller of a run may no longer act, for the code of the run. It
// is empty if err is neither caller.ErrEnded nor caller.ErrInactive.
func Ended(err error) string {
	switch {
	case errors.Is(err, caller.ErrInactive):
		return caller.ErrInactive.Error()
	case errors.Is(err, caller.ErrEnded):
		return caller.ErrEnded.Error()
	}
	return ""
}

func notInForce(err error) *failure {
	why := Ended(err)
	if errors.Is(err, caller.ErrInactive) {
		why = admission.CodePolicy + ": " + why
	}
	f := failf(errortype.PolicyDenied, "%s, so the call was not made", why).because(err)
	f.refused, f.detail = true, err.Error()
	return f
}
