package system

import (
	"fmt"
	"os"
	"slices"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/policies"
)

// PolicyFiles reads the configured policy files, or returns the shipped one.
func PolicyFiles(c *config.Config) ([]policies.File, error) {
	if len(c.Policies) == 0 {
		return []policies.File{policies.Default()}, nil
	}
	var files []policies.File
	for _, path := range c.Policies {
		source, err := readPolicy(path)
		if err != nil {
			return nil, &setup.Error{Err: fmt.Errorf("reading the policies: %w", err),
				Advice: "the key policies lists files one by one, without patterns and directories"}
		}
		files = append(files, policies.File{Name: path, Source: source})
	}
	return files, nil
}

// maxPolicy bounds a policy file, in bytes: thousands of rules fit.
const maxPolicy = 4 << 20

// readPolicy reads a regular file: reading another kind, such as a pipe, could
// block for ever.
func readPolicy(path string) ([]byte, error) {
	if err := store.CheckOwner(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is not a regular file", path)
	case info.Size() > maxPolicy:
		return nil, fmt.Errorf("%q has %d bytes, more than the %d of a policy file", path, info.Size(), maxPolicy)
	}
	return store.ReadFile(path)
}

// OperatorSettings returns the settings of servers and tools in the configuration, for the
// policies.
func OperatorSettings(c *config.Config) (policies.Operator, error) {
	operator := policies.Operator{}
	for _, server := range c.Servers {
		settings := policies.Server{
			TrustAnnotations: server.Settings.TrustAnnotations,
			Allow:            server.Settings.Allow, Deny: server.Settings.Deny, Risks: map[string]policies.Risk{},
			Apps: server.Settings.Apps,
		}
		for name, tool := range server.Settings.Tools {
			settings.Risks[name] = policies.RiskUnknown // so that its name is checked
			if tool.Risk == "" {
				continue
			}
			risk, err := policies.ParseRisk(tool.Risk)
			if err != nil {
				return nil, fmt.Errorf("servers.%s.tools.%s: %w", server.ID, name, err)
			}
			settings.Risks[name] = risk
		}
		operator[server.ID] = settings
	}
	for _, action := range c.Kernel.Actions { // whoever calls the tool
		if of := operator[action.Server]; action.SQL != "" {
			if of.SQL == nil {
				of.SQL = map[string][]string{}
			}
			of.SQL[action.Tool] = append(of.SQL[action.Tool], action.SQL)
			operator[action.Server] = of
		}
	}
	return operator, nil
}

// ReadRuleSet reads the rules that a configuration names.
func ReadRuleSet(c *config.Config, snapshot *catalog.Snapshot) (admission.RuleSet, error) {
	files, err := PolicyFiles(c)
	if err != nil {
		return admission.RuleSet{}, err
	}
	operator, err := OperatorSettings(c)
	return admission.RuleSet{Files: files, Operator: operator, Snapshot: snapshot, Roles: RoleNames(c)}, err
}

// RuleSet returns the rules that are in force, with the tools that the caller sees.
func (s *System) RuleSet(who caller.Caller) (admission.RuleSet, error) {
	s.rules.mu.Lock()
	c, files := s.Config(), s.rules.files
	s.rules.mu.Unlock()
	operator, err := OperatorSettings(c)
	return admission.RuleSet{Files: files, Operator: operator, Snapshot: s.Snapshot(who), Roles: RoleNames(c)}, err
}

// RoleNames returns the names of the configured roles.
func RoleNames(c *config.Config) []string {
	names := make([]string, len(c.Auth.Roles))
	for i, role := range c.Auth.Roles {
		names[i] = role.Name
	}
	return names
}

// Roles returns the roles of a caller.
func (s *System) Roles(who caller.Caller) []string { return auth.RolesOf(s.Config().Auth.Roles, who) }

// mayApprove reports whether a caller who approved something may still approve, with all roles that the caller had.
func (s *System) mayApprove(who caller.Caller) bool {
	has := s.Roles(who)
	return s.authority.mayApprove(who) &&
		!slices.ContainsFunc(who.Roles, func(role string) bool { return !slices.Contains(has, role) })
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
