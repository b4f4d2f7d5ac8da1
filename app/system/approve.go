package system

import (
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// mayApprove reports whether a caller who approved something may still approve, with all roles that the caller had.
func (s *System) mayApprove(who caller.Caller) bool {
	return s.authority.MayApprove(who) && s.HasRoles(who)
}

// escalation returns when questions are escalated.
func escalation(c *config.Config) approval.Escalation {
	e := c.Approvals.Escalation
	return approval.Escalation{After: e.After, Role: e.Role, Awake: c.Approvals.QuietHours.Awake}
}

// localApprover returns who approves at a terminal of this machine.
func (s *System) localApprover() caller.Caller {
	user := caller.Caller{Principal: setup.Principal(), Kind: caller.Local, Scopes: []string{caller.ScopeApprove}}
	user.Roles = s.Roles(user)
	return user
}
