package engines

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/verify"
	"github.com/airlock-mcp/airlock/verify/gateway"
)

// Decisions keeps the decisions of the risk gateway in the audit log.
type Decisions struct {
	Verifier *Verifier
	Log      *audit.Log
}

// Record writes a decision to the audit log. A decision that allows is durable when it returns.
func (d Decisions) Record(ctx context.Context, r gateway.Record) error {
	log := d.Log
	record := audit.Record{
		Kind: audit.KindDecision, Identity: audit.IdentityOf(r.Caller),
		Act:    audit.Act{ToolName: r.Tool, ArgumentsHash: log.Hash(r.Arguments)},
		Ruling: audit.Ruling{Decision: "allow", VerificationID: r.Decision.VerificationID, Risk: r.Decision.RiskLevel},
		Effect: audit.Effect{ErrorType: r.Decision.ErrorCode},
	}
	record.RunID = r.RunID
	if r.Analysed {
		record.Engine, record.Image = "code", d.Verifier.imageName()
	}
	if r.Decision.Verified {
		return log.Append(ctx, record)
	}
	record.Decision, record.Outcome = "deny", audit.OutcomeRefused
	return log.Note(ctx, record)
}

// Verifications asks the engines for callers and records the requests. It implements
// api.Verifications.
type Verifications struct {
	Verifier *Verifier
	Log      *audit.Log
}

// Verify asks one engine. A verdict that cannot be recorded is withheld.
func (v Verifications) Verify(ctx context.Context, who caller.Caller, r verify.Request) (verify.Verdict, error) {
	r.Caller = who.Account()
	verdict, err := v.Verifier.Verify(ctx, r)
	if err != nil {
		return verify.Verdict{}, err
	}
	arguments, err := canon.JSON(r.Arguments)
	if err != nil { // numbers that are not doubles: hash the arguments as they were sent
		arguments = r.Arguments
	}
	record := audit.Record{
		Kind: audit.KindVerdict, Identity: audit.IdentityOf(who),
		Act:    audit.Act{Engine: r.Engine, ArgumentsHash: v.Log.Hash(arguments)},
		Ruling: audit.Ruling{Verdict: string(verdict.Status)}, Effect: audit.Effect{Outcome: audit.OutcomeOK},
	}
	record.Image = v.Verifier.imageName()
	if err := v.Log.Note(ctx, record); err != nil {
		return verify.Verdict{}, fmt.Errorf("recording a verdict: %w", err)
	}
	return verdict, nil
}
