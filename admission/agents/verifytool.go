package agents

import (
	"context"
	"encoding/json"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/database"
)

// VerifyTool decides whether an agent may call a tool with these parameters, which are an object or
// empty. Safe tools are approved. A dangerous one is approved once, after a person has approved
// this exact call. All others are blocked. The error is ErrUnknown, an *Error for parameters that
// cannot be parsed, or the reason why no decision was possible, and then nothing is approved.
func (s *Service) VerifyTool(ctx context.Context, agentID, tool string, parameters json.RawMessage) (ToolRuling, error) {
	a := attempt{Service: s, action: Action{Type: tool, Parameters: json.RawMessage("null")}}
	var err error
	if a.agent, err = s.recent(ctx, agentID); err != nil {
		return ToolRuling{}, err
	}
	defer a.release()
	if err := a.prepareTool(ctx, parameters); err != nil {
		return ToolRuling{}, err
	}
	var ruling ToolRuling
	if refused := a.limit(ctx); refused != nil {
		ruling.BlockedReason = refused.Message
	} else if ruling, err = a.ruleToolCall(ctx); err != nil {
		return ToolRuling{}, err
	}
	if err := a.recordDecision(ctx, ruling.decision()); err != nil {
		return ToolRuling{}, err
	}
	if err := a.openQuestion(ctx); err != nil {
		return ToolRuling{}, err
	}
	return ruling, nil
}

// prepareTool does the slow work before the transaction, as prepare does.
func (a *attempt) prepareTool(ctx context.Context, parameters json.RawMessage) error {
	done, err := a.assessing.begin(ctx, a.agent.Share(), len(parameters))
	if err != nil {
		return err
	}
	defer done()
	if err := a.readTool(parameters); err != nil {
		return err
	}
	if err := a.assess(ctx); err != nil {
		return err
	}
	if _, ask := a.ruleTool(); ask && a.place == nil {
		a.reserve()
	}
	return nil
}

func (a *attempt) readTool(parameters json.RawMessage) error {
	if err := checkName("the tool's name", a.action.Type); err != nil {
		return refuse(CodeAction, "%s", err)
	}
	if len(parameters) > maxRequest {
		return refuse(CodeAction, "the parameters have %d bytes, and %d are allowed", len(parameters), maxRequest)
	}
	wrapped, err := json.Marshal(map[string]any{"type": a.action.Type})
	if err == nil && len(parameters) > 0 {
		wrapped = append(append(wrapped[:len(wrapped)-1], `,"parameters":`...), append(parameters, '}')...)
	}
	if err != nil {
		return err
	}
	if a.action, err = ParseAction(wrapped); err != nil {
		return err
	}
	a.at.Fingerprint, err = a.action.Fingerprint()
	return err
}

func (a *attempt) ruleToolCall(ctx context.Context) (ruling ToolRuling, err error) {
	err = a.opts.Database.Update(ctx, func(tx database.Tx) error {
		if err := a.reload(ctx, tx); err != nil {
			return err
		}
		var ask bool
		if ruling, ask = a.ruleTool(); ask {
			if err := a.manually(ctx, tx, &ruling); err != nil {
				return err
			}
		}
		return a.ledger.Record(ctx, tx, a.accounts(), budget.Charge{})
	})
	return ruling, err
}

// manually looks for a person's answer to a dangerous call, and asks if nobody has answered.
func (a *attempt) manually(ctx context.Context, tx database.Tx, ruling *ToolRuling) error {
	subject := canon.Digest([]byte("tool " + a.at.Fingerprint + a.opts.Rules.Version()))
	key := questionKey{agent: a.agent.ID, subject: subject}
	arguments, err := json.Marshal(a.action)
	if err != nil {
		return err
	}
	q := a.newQuestionOf(key, arguments)
	answered, err := a.answer(ctx, tx, &q)
	switch {
	case err != nil:
		return err
	case answered.state == questionApproved:
		ruling.Approved, ruling.BlockedReason = true, ""
		_, err := tx.ExecContext(ctx, `DELETE FROM question WHERE id = ?`, answered.id)
		return err
	case answered.state == questionOpen:
		ruling.ApprovalID = answered.id
		return nil
	case answered.state == questionRefused:
		ruling.BlockedReason += ", and a person refused this call"
		return nil
	}
	if refused := a.hold(&q); refused != nil {
		ruling.BlockedReason, ruling.Retryable = ruling.BlockedReason+", and "+refused.Message, refused.Retryable
		return nil
	}
	ruling.ApprovalID = q.id
	return q.store(ctx, tx)
}

// decision returns the ruling in the form of the audit log and the activity.
func (r ToolRuling) decision() Decision {
	switch {
	case r.Approved:
		return Decision{Decision: Approved}
	case r.ApprovalID != "":
		return Decision{Decision: Pending}
	}
	return Decision{Decision: Denied, Error: &Error{Code: CodePolicy, Message: r.BlockedReason}}
}
