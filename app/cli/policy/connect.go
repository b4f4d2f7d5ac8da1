package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// explainedConnection is the output of --json.
type explainedConnection struct {
	Host    string   `json:"host"`
	Server  string   `json:"server_id,omitempty"` // the contained server; empty for code
	Listed  bool     `json:"listed"`              // the configuration lists the host
	Allow   bool     `json:"allow"`               // listed and permitted
	Approve []string `json:"approve"`             // who must approve the connection
	Rules   []string `json:"rules"`               // the rules that decided, with file and line
	Reasons []string `json:"reasons"`             // why it is denied
	Errors  []string `json:"errors"`              // rules that could not be evaluated
}

// connect decides one connection as if it were the first of its session. It needs no tools.
func (v *policyExplainVerb) connect(s *verb.Streams) error {
	if v.Tool != "" {
		return verb.Usage("TOOL cannot be combined with --connect",
			"airlock policy explain --connect NAME:PORT [SERVER]")
	}
	host, err := egress.ParseHost(v.Connect)
	if err != nil {
		return verb.Usage(err.Error(), "airlock policy explain --connect api.github.com:443")
	}
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	connection := policies.Connection{Principal: cmp.Or(v.For, setup.Principal()),
		Facts: caller.Facts{Groups: v.Group}, Host: host.Name, Port: host.Port}
	listed := slices.Contains(c.Networks(), host)
	if v.Server != "" {
		server, found := c.Server(v.Server)
		if !found || server.Settings.Sandbox == nil {
			return verb.Usage(fmt.Sprintf("there is no contained server %q", v.Server),
				"airlock servers list shows the servers; leave SERVER out for the connections of code")
		}
		connection.Principal, connection.Server = v.Server, true
		listed = slices.Contains(server.Settings.Sandbox.Network, host)
	}
	files, err := rules.PolicyFiles(c)
	if err != nil {
		return err
	}
	d, err := admission.RuleSet{Files: files}.ExplainConnect(connection)
	if err != nil {
		return err
	}
	if v.JSON {
		shown := explainedConnection{Host: host.String(), Server: v.Server, Listed: listed, Allow: listed && d.Allow,
			Approve: verb.CleanAll(d.Approve), Reasons: verb.CleanAll(d.Reasons), Errors: verb.CleanAll(d.Errors),
			Rules: []string{}}
		for _, rule := range d.Rules {
			shown.Rules = append(shown.Rules, verb.Clean(rule.String()))
		}
		err = verb.PrintLine(s.Out, shown)
	} else {
		err = policies.ExplainConnect(verb.Cleaned(s.Out), connection, d, listed)
	}
	if err == nil && (!listed || !d.Allow) {
		err = verb.ExitError(verb.ExitRefused)
	}
	return err
}
