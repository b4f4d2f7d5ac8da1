package system

import (
	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/redact"
)

// openBroker opens the broker with the operator's policies.
func (s *System) openBroker(servers broker.Upstream, redactor *redact.Redactor) error {
	read, files, err := rules.Read(s.config)
	if err != nil {
		return err
	}
	s.admission, err = admission.New(admission.Options{Rules: read, Log: s.log, Logger: s.opts.Logger})
	if err != nil {
		return err
	}
	s.Servers = upstreams.NewServers(s.catalog, s.callers, upstreams.ServersOptions{
		Config: func() *config.Config { return s.Config() }, Admission: s.admission, State: s.state, Log: s.log,
		Receiver: s.receiver})
	s.Rules = rules.New(s.config, files, rules.Options{Directories: s.directories, Reread: s.opts.Reread,
		Notify: s.opts.Notify, Serving: s.opts.Serving, Host: s.opts.Host, Profile: s.opts.Profile, State: s.state,
		Log: s.log, Admission: s.admission, Servers: s.Servers, Clean: s.Gate().Text, Logger: s.opts.Logger})
	opts := &broker.Options{
		Approver: s.questions, Redactor: redactor, Logger: s.opts.Logger, Authority: &s.authority,
		Taint: s.Taint(), SignIns: s.SignIns(), Definitions: s.catalog,
	}
	if s.broker, err = broker.New(servers, s.log, s.admission, opts); err != nil {
		return err
	}
	if s.catalog.Contained() != nil {
		s.catalog.Contained().Authorize(s.broker)
	}
	return nil
}

// Taint returns the store of the servers that conversations have read.
func (s *System) Taint() *taint.Store { return taint.New(s.state.Open, nil) }
