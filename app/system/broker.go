package system

import (
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/redact"
)

// openBroker opens the broker with the operator's policies.
func (s *System) openBroker(servers broker.Upstream, redactor *redact.Redactor) error {
	rule, files, err := readRules(s.config)
	if err != nil {
		return err
	}
	s.rules = &rules{config: s.config, files: files, sources: sources(files)}
	opts := &broker.Options{
		Policies: rule.Policies, Operator: rule.Operator, Limits: rule.Limits, Approver: s.questions, Redactor: redactor, Logger: s.opts.Logger,
		Profiles: map[string]*catalog.Profile{}, Elicitation: map[string]bool{}, Agents: &s.acting, Authority: &s.authority,
	}
	for _, server := range s.config.Servers {
		opts.Elicitation[server.ID] = server.Settings.Elicitation
	}
	for _, profile := range s.config.Profiles {
		opts.Profiles[profile.Name] = profile
	}
	if s.catalog != nil {
		opts.Definitions = s.catalog
	}
	s.broker, err = broker.New(servers, s.log, opts)
	return err
}

// callLimits are the configured limits of tool calls.
func callLimits(c *config.Config) broker.Limits {
	l := c.Limits.Calls
	limits := broker.Limits{
		Calls: l.Run, SessionCalls: l.Session, Concurrent: l.Concurrent,
		BytesIn: l.BytesIn, BytesOut: l.BytesOut, ResultBytes: l.ResultBytes, UnreadBytes: l.UnreadBytes,
		CallTimeout: l.Timeout, Repeats: l.Repeats,
		ServerRate: broker.Rate(l.ServerRate), ToolRate: broker.Rate(l.ToolRate), CatalogRate: broker.Rate(l.CatalogRate), ApprovalTimeout: l.ApprovalTimeout,
		Servers: map[string]broker.ServerLimits{},
	}
	for _, server := range c.Servers {
		own := broker.ServerLimits{Rate: broker.Rate(server.Settings.Rate), Tools: map[string]broker.Rate{}}
		if server.CallTimeout != l.Timeout {
			own.CallTimeout = server.CallTimeout
		}
		for name, tool := range server.Settings.Tools {
			if tool.Rate.Calls > 0 {
				own.Tools[name] = broker.Rate(tool.Rate)
			}
		}
		limits.Servers[server.ID] = own
	}
	return limits
}
