package rules

import (
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/catalog"
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
		source, err := ReadPolicy(path)
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

// ReadPolicy reads a regular file: reading another kind, such as a pipe, could
// block for ever.
func ReadPolicy(path string) ([]byte, error) {
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

// operatorSettings returns the settings of servers and tools in the configuration, for the
// policies.
func operatorSettings(c *config.Config) (policies.Operator, error) {
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
	operator, err := operatorSettings(c)
	return admission.RuleSet{Files: files, Operator: operator, Snapshot: snapshot, Roles: RoleNames(c)}, err
}

// RoleNames returns the names of the configured roles.
func RoleNames(c *config.Config) []string {
	names := make([]string, len(c.Auth.Roles))
	for i, role := range c.Auth.Roles {
		names[i] = role.Name
	}
	return names
}

// Reading is the rules of a configuration, with the policy files as they were read.
type Reading struct {
	admission.Rules
	files []policies.File
}

// Read reads the rules of the configuration c and of its policy files.
func Read(c *config.Config) (Reading, error) {
	files, err := PolicyFiles(c)
	if err != nil {
		return Reading{}, err
	}
	engine, err := policies.Load(files...)
	if err != nil {
		return Reading{}, err
	}
	if rule, problem := engine.WithRoles(RoleNames(c)).UnknownRole(); problem != "" {
		return Reading{}, &setup.Error{Err: fmt.Errorf("%s:%d: %s", rule.File, rule.Line, problem),
			Advice: "write auth.roles: {NAME: {groups: [GROUP]}} in the configuration"}
	}
	operator, err := operatorSettings(c)
	rules := admission.Rules{Policies: engine, Operator: operator, Limits: callLimits(c),
		Profiles: map[string]*catalog.Profile{}, Elicitation: map[string]bool{}}
	for _, profile := range c.Profiles {
		rules.Profiles[profile.Name] = profile
	}
	for _, server := range c.Servers {
		rules.Elicitation[server.ID] = server.Settings.Elicitation
	}
	return Reading{rules, files}, err
}

// sources digests policy files, to notice that one has changed.
func sources(files []policies.File) [sha256.Size]byte {
	hash := sha256.New()
	for _, file := range files {
		digest := sha256.Sum256(file.Source)
		hash.Write([]byte(file.Name)) // never fails
		hash.Write(digest[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// callLimits are the configured limits of tool calls.
func callLimits(c *config.Config) admission.Limits {
	l := c.Limits.Calls
	limits := admission.Limits{
		Calls: l.Run, SessionCalls: l.Session, Concurrent: l.Concurrent,
		BytesIn: l.BytesIn, BytesOut: l.BytesOut, ResultBytes: l.ResultBytes,
		LargeResultBytes: l.LargeResultBytes, UnreadBytes: l.UnreadBytes,
		CallTimeout: l.Timeout, Repeats: l.Repeats,
		ServerRate: admission.Rate(l.ServerRate), ToolRate: admission.Rate(l.ToolRate),
		CatalogRate: admission.Rate(l.CatalogRate), ApprovalTimeout: l.ApprovalTimeout,
		Servers: map[string]admission.ServerLimits{},
	}
	for _, server := range c.Servers {
		own := admission.ServerLimits{Rate: admission.Rate(server.Settings.Rate), Tools: map[string]admission.Rate{}}
		if server.CallTimeout != l.Timeout {
			own.CallTimeout = server.CallTimeout
		}
		for name, tool := range server.Settings.Tools {
			if tool.Rate.Calls > 0 {
				own.Tools[name] = admission.Rate(tool.Rate)
			}
		}
		limits.Servers[server.ID] = own
	}
	return limits
}
