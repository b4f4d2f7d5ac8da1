package kernel

import (
	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/policies"
)

// effect is what an action does at worst, in the words of the policies; sql says
// that SQL among the parameters decided it.
func (s *Service) effect(j job) (effect string, sql bool) {
	worst := sqltext.Read
	if own, ok := ownActions[j.Action]; ok {
		return own.effect, false
	}
	if j.target.SQL != "" {
		// A statement that is missing or no text cannot be judged.
		worst = sqltext.Unclear
		if query, ok := j.params[j.target.SQL].(string); ok {
			worst = sqltext.Classify(query)
		}
		sql = true
	} else {
		worst = s.toolEffect(j)
	}
	// Other parameters are no SQL as far as is known, but what drops a table is one
	// wherever it stands.
	if destroys(j.params, j.target.SQL) {
		return sqltext.Destroy.String(), true
	}
	return worst.String(), sql
}

// toolEffect is what the risk of a tool says: the operator's word, or the
// server's where the operator trusts it. What is not known to read writes.
func (s *Service) toolEffect(j job) sqltext.Effect {
	risk, there := s.opts.Dispatcher.Risk(j.actor.as(j.agent), j.target.Server, j.target.Tool)
	switch {
	case there && risk == policies.RiskRead:
		return sqltext.Read
	case there && risk == policies.RiskDestructive:
		return sqltext.Destroy
	}
	return sqltext.Write
}

// destroys says whether a text among the parameters, other than the one named,
// drops a table or the like.
func destroys(params map[string]any, except string) bool {
	for name, value := range params {
		if name != except && destroysIn(value) {
			return true
		}
	}
	return false
}

func destroysIn(value any) bool {
	switch v := value.(type) {
	case string:
		return sqltext.Destroys(v)
	case []any:
		for _, item := range v {
			if destroysIn(item) {
				return true
			}
		}
	case map[string]any:
		for name, member := range v {
			if sqltext.Destroys(name) || destroysIn(member) {
				return true
			}
		}
	}
	return false
}
