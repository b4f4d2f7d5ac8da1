package cli

import (
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/redact"
	"github.com/airlock-mcp/airlock/policies"
)

// openBroker makes the broker with the operator's policies.
func (s *system) openBroker(servers broker.Upstream, redactor *redact.Redactor) error {
	c := s.config
	files, err := policyFiles(c)
	if err != nil {
		return err
	}
	engine, err := policies.Load(files...)
	if err != nil {
		return err
	}
	s.policySources = sources(files)
	operator, err := operatorSettings(c)
	if err != nil {
		return err
	}
	s.broker, err = broker.New(servers, s.log, &broker.Options{
		Policies: engine, Operator: operator, Approver: s.desk, Redactor: redactor, Limits: callLimits(c), Logger: s.logger,
	})
	return err
}

// callLimits are the configured limits of tool calls.
func callLimits(c *config.Config) broker.Limits {
	l := c.Limits.Calls
	limits := broker.Limits{
		Calls: l.Run, SessionCalls: l.Session, Concurrent: l.Concurrent,
		BytesIn: l.BytesIn, BytesOut: l.BytesOut, ResultBytes: l.ResultBytes, UnreadBytes: l.UnreadBytes,
		CallTimeout: l.Timeout, Repeats: l.Repeats,
		ServerRate: broker.Rate(l.ServerRate), ToolRate: broker.Rate(l.ToolRate), CatalogRate: broker.Rate(l.CatalogRate),
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

// loadPolicies compiles the configured policy files, or the shipped one.
func loadPolicies(c *config.Config) (*policies.Engine, error) {
	files, err := policyFiles(c)
	if err != nil {
		return nil, err
	}
	return policies.Load(files...)
}

func policyFiles(c *config.Config) ([]policies.File, error) {
	if len(c.Policies) == 0 {
		return []policies.File{policies.Default()}, nil
	}
	var files []policies.File
	for _, path := range c.Policies {
		source, err := readPolicy(path)
		if err != nil {
			return nil, fmt.Errorf("reading the policies: %w", err)
		}
		files = append(files, policies.File{Name: path, Source: source})
	}
	return files, nil
}

// maxPolicy bounds a policy file, in bytes: thousands of rules fit.
const maxPolicy = 4 << 20

// readPolicy reads an ordinary file: another kind could keep whoever waits for
// its policies, or reloads them, waiting for ever.
func readPolicy(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is no ordinary file", path)
	case info.Size() > maxPolicy:
		return nil, fmt.Errorf("%q has %d bytes, more than the %d of a policy file", path, info.Size(), maxPolicy)
	}
	return os.ReadFile(path)
}

// operatorSettings hands what the configuration says about servers and tools to
// the policies.
func operatorSettings(c *config.Config) (policies.Operator, error) {
	operator := policies.Operator{}
	for _, server := range c.Servers {
		settings := policies.Server{
			TrustAnnotations: server.Settings.TrustAnnotations,
			Allow:            server.Settings.Allow, Deny: server.Settings.Deny, Risks: map[string]policies.Risk{},
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
	return operator, nil
}
