package broker

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// decide asks the rules.
func (a *attempt) decide(context.Context) *failure {
	a.engine = a.rules.Policies
	a.ruling = a.engine.Decide(policies.Request{
		Principal: a.run.identity.Caller.Name(),
		Tool:      a.tool,
		Settings:  a.settings,
		Input:     a.input,
		Session:   a.before,
	})
	if a.ruling.Allow {
		return nil
	}
	f := failf(typePolicyDenied, "policy does not allow this call: %s. Do not retry it; ask the user", a.withoutPaths(strings.Join(a.ruling.Reasons, "; ")))
	f.detail = strings.Join(append(a.ruling.Reasons, a.ruling.Errors...), "; ")
	return f
}

// withoutPaths names the files of rules by their last part: where they are on
// the host is nothing that code in a sandbox needs to know. The record has it.
func (a *attempt) withoutPaths(text string) string {
	for _, r := range a.ruling.Rules {
		if directory, base := filepath.Split(r.File); directory != "" {
			text = strings.ReplaceAll(text, r.File, base)
		}
	}
	return text
}

// approve asks a person, where the rules say so. The sandbox waits meanwhile,
// off its run's clock.
func (a *attempt) approve(ctx context.Context) *failure {
	a.approval = approval.NotRequired
	if len(a.ruling.Approve) == 0 {
		return nil
	}
	a.approval = approval.Pending
	question := a.question()
	if err := a.recordQuestion(ctx, question); err != nil {
		return unrecorded(err)
	}
	var err error
	a.run.parked(func() { a.verdict, err = a.broker.opts.Approver.Ask(ctx, question) })
	a.recordVerdict(ctx, question, err)
	switch {
	case ctx.Err() != nil:
		a.run.met(approval.Pending)
		return a.cut(ctx)
	case err != nil:
		a.approval = approval.Denied
		a.run.met(approval.Denied)
		return failf(typeApprovalDenied, "the call needs a person's approval, and nobody could be asked").because(err)
	}
	return a.heed(question)
}

// heed turns a verdict into a failure, or nil when a person agreed, in time, and
// the rules are still those under which they did.
func (a *attempt) heed(question approval.Question) *failure {
	a.approval = approval.Denied
	switch a.verdict.Answer {
	case approval.Yes:
		if a.broker.rules.Load() != a.rules {
			a.run.met(approval.Denied)
			return failf(typeApprovalDenied, "the rules changed while the approval was awaited; make the call again")
		}
		if !a.broker.opts.Now().Before(question.Expires) {
			a.run.met(approval.Denied)
			return failf(typeApprovalTimeout, "the approval came too late")
		}
		a.approval = approval.Approved
		a.run.met(approval.Approved)
		return nil
	case approval.Expired:
		a.approval = approval.Pending
		a.run.met(approval.Pending)
		return failf(typeApprovalTimeout, "the call needs a person's approval, and nobody answered in time")
	case approval.Nobody:
		a.run.met(approval.Denied)
		return failf(typeApprovalDenied, "the call needs a person's approval (%s), and there is nobody to ask here. %s",
			a.withoutPaths(strings.Join(a.ruling.Policies(), ", ")), a.howToAllow())
	default:
		a.run.met(approval.Denied)
		return failf(typeApprovalDenied, "a person refused the call. Do not repeat it; ask the user what to do instead")
	}
}

// howToAllow is for the operator who reads the message.
func (a *attempt) howToAllow() string {
	if a.ruling.Risk == policies.RiskDestructive {
		return fmt.Sprintf("The operator can lower its risk (servers.%s.tools.%s.risk: write) and allow it (servers.%s.allow), or write a policy",
			a.tool.ServerID, a.tool.Name, a.tool.ServerID)
	}
	return fmt.Sprintf("The operator can allow it (servers.%s.allow: [%s]), trust the server's own claim to only read (servers.%s.trustAnnotations: true), or write a policy",
		a.tool.ServerID, a.tool.Name, a.tool.ServerID)
}

func (a *attempt) question() approval.Question {
	now := a.broker.opts.Now()
	rules := make([]string, len(a.ruling.Rules))
	for i, r := range a.ruling.Rules {
		rules[i] = r.String()
	}
	var flags []string
	for _, flag := range a.settings.Flags {
		flags = append(flags, flag.String())
	}
	who := a.run.identity
	return approval.Question{
		ID: telemetry.NewID("apr"), Asked: now, Expires: now.Add(a.broker.opts.ApprovalTimeout),
		Asking: approval.Asking{
			Principal: who.Caller.Principal, Issuer: who.Caller.Issuer, CallerKind: string(who.Caller.Kind),
			SessionID: who.Caller.Session, RunID: who.ID, CallID: a.id,
		},
		Subject: approval.Subject{
			ServerID: a.tool.ServerID, ToolName: a.tool.Name, DefinitionDigest: a.tool.Digest,
			Arguments: a.arguments, CodeHash: who.CodeHash, PolicyVersion: a.engine.Version(), Code: who.Code, ClaimedLine: a.call.Line,
		},
		Grounds: approval.Grounds{Risk: a.ruling.Risk.String(), Flags: flags, Rules: rules, Approve: a.ruling.Approve},
	}
}
