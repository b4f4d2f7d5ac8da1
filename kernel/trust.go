package kernel

import (
	"context"
	"errors"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// Sign signs content in the name of an agent that the actor may act as. The error is a *Refusal, or
// the reason why nothing was signed.
func (s *Service) Sign(ctx context.Context, a Actor, agentID string, c iatp.Content) (iatp.Attestation, error) {
	agent, err := s.actAs(ctx, a, agentID, "iatp_sign")
	if err != nil {
		return iatp.Attestation{}, err
	}
	if agent.Status == agents.Active { // another is refused by name
		if err := s.use(ctx, a, agent.ID, "iatp_sign", "iatp_sign"); err != nil {
			return iatp.Attestation{}, err
		}
	}
	signed, err := s.opts.Trust.Sign(ctx, agent.ID, c)
	e := event{tool: "iatp_sign", agent: agent.ID, decision: allowed, detail: "key " + signed.KeyID,
		hashed: []byte(c.Text)}
	if err = asRefusal(err); err != nil {
		e.decision, e.detail = denied, ""
	}
	// A signature that cannot be recorded is not returned.
	if unrecorded := s.record(ctx, a, e); unrecorded != nil {
		return iatp.Attestation{}, errors.Join(err, unrecorded)
	}
	return signed, err
}

// Verify reports whether another agent can be trusted for the query. The error is a *Refusal of the
// query, or a failed lookup.
func (s *Service) Verify(ctx context.Context, a Actor, q iatp.Query) (iatp.Trust, error) {
	if err := s.admit(ctx, a, "iatp_verify"); err != nil {
		return iatp.Trust{}, err
	}
	trust, err := s.opts.Trust.Verify(ctx, q)
	if err != nil {
		return trust, asRefusal(err)
	}
	e := event{tool: "iatp_verify", decision: allowed, detail: "about " + short(q.Agent)}
	if !trust.Verified {
		e.decision = denied
	}
	return trust, s.record(ctx, a, e)
}

// Reputation returns the reputation of a known agent.
func (s *Service) Reputation(ctx context.Context, a Actor, agentID string) (iatp.Reputation, error) {
	if err := s.admit(ctx, a, "iatp_reputation"); err != nil {
		return iatp.Reputation{}, err
	}
	r, err := s.opts.Trust.Reputation(ctx, agentID)
	if err != nil {
		return r, asRefusal(err)
	}
	return r, s.record(ctx, a, event{tool: "iatp_reputation", decision: allowed, detail: "about " + short(agentID)})
}

// Slash lowers the reputation of a known agent. Agents may not do that, and users need the
// permission.
func (s *Service) Slash(ctx context.Context, a Actor, sl iatp.Slash) (iatp.Penalty, error) {
	e := event{tool: "iatp_reputation", decision: allowed, detail: "slashes " + short(sl.Agent),
		hashed: []byte(sl.Reason)}
	sl.By = a.Name()
	var refused error
	if a.Kind != caller.Local && (a.Kind != caller.User || !a.Has(caller.ScopeSlash)) {
		refused = refuse("Slashing needs the authority to: the local operator, or a token with the scope slash")
	} else {
		refused = asRefusal(s.opts.Trust.CheckSlash(ctx, &sl))
	}
	if refused != nil {
		e.decision, e.detail = denied, joined(e.detail, refused.Error())
	}
	if err := s.record(ctx, a, e); err != nil {
		return iatp.Penalty{}, err
	}
	if refused != nil {
		return iatp.Penalty{}, refused
	}
	p, err := s.opts.Trust.Slash(ctx, sl)
	return p, asRefusal(err)
}

// asRefusal converts a refusal of iatp to a refusal of the kernel.
func asRefusal(err error) error {
	if no, ok := errors.AsType[*iatp.Refusal](err); ok {
		return &Refusal{no.Text}
	}
	return err
}
