package system

import (
	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/redact"
)

// openBroker opens the broker with the operator's policies.
func (s *System) openBroker(servers broker.Upstream, redactor *redact.Redactor) error {
	rule, files, err := readRules(s.config)
	if err != nil {
		return err
	}
	s.rules = &rules{files: files, sources: sources(files)}
	s.rules.config.Store(s.config)
	s.admission, err = admission.New(admission.Options{Rules: rule, Log: s.log, Logger: s.opts.Logger})
	if err != nil {
		return err
	}
	s.Servers = upstreams.NewServers(s.catalog, s.callers, upstreams.ServersOptions{Config: s.Config,
		Admission: s.admission, State: s.state, Log: s.log, Receiver: s.receiver})
	opts := &broker.Options{
		Approver: s.questions, Redactor: redactor, Logger: s.opts.Logger, Authority: &s.authority,
		Taint: s.Taint(), SignIns: s.SignIns(),
	}
	if s.catalog != nil {
		opts.Definitions = s.catalog
	}
	if s.broker, err = broker.New(servers, s.log, s.admission, opts); err != nil {
		return err
	}
	if s.catalog != nil && s.catalog.Contained() != nil {
		s.catalog.Contained().Authorize(s.broker)
	}
	return nil
}

// Taint returns the store of the servers that conversations have read.
func (s *System) Taint() *taint.Store { return taint.New(s.state.Open, nil) }

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
