package kernel

import (
	"context"
	"maps"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/policies"
)

// effect returns the worst possible effect of an action, as a value of the named policies. sql is
// true if SQL in the parameters determined it. The error is that of ctx.
func (s *Service) effect(ctx context.Context, j job) (effect string, sql bool, err error) {
	if risk, own := admission.KernelRisk(j.Action); own {
		return effectOf(risk), false, nil
	}
	worst, others := policies.RiskLow, j.params
	if j.target.SQL != "" {
		// A statement that is missing or not a string cannot be judged.
		found := sqltext.Unclear
		if query, ok := j.params[j.target.SQL].(string); ok {
			found = sqltext.Judge(query).Effect
		}
		switch sql = true; found {
		case sqltext.Read:
		case sqltext.Write:
			worst = policies.RiskHigh
		default:
			return found.String(), sql, nil
		}
		others = maps.Clone(j.params)
		delete(others, j.target.SQL)
	} else {
		worst = s.toolRisk(j)
	}
	content, err := admission.Assess(ctx, admission.Subject{Arguments: others})
	if content.Risk > worst {
		worst, sql = content.Risk, sql || content.Engine == "sql"
	}
	return effectOf(worst), sql, err
}

// toolRisk returns the risk of the tool that carries out an action.
func (s *Service) toolRisk(j job) policies.Risk {
	risk, _ := s.opts.Dispatcher.Risk(j.actor.as(j.agent), j.target.Server, j.target.Tool)
	return risk.Known()
}

func effectOf(risk policies.Risk) string {
	switch risk {
	case policies.RiskLow:
		return sqltext.Read.String()
	case policies.RiskCritical:
		return sqltext.Destroy.String()
	}
	return sqltext.Write.String()
}
