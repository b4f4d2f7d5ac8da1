package daemon

import (
	"context"

	"github.com/airlock-mcp/airlock/app/console"
)

// openConsole makes the web pages for people, where the configuration has them and
// what is served is not the kernel's tools alone.
func (d *Daemon) openConsole() (err error) {
	serve := d.opts.Config.Serve
	if !serve.Console || d.opts.Kernel {
		return nil
	}
	d.console, err = console.New(console.Options{
		System: d.opts.System, Runs: d.opts.System.Runs(), Approvals: d.opts.System.Approvals(), Identify: d.identify.Token, Status: d.consoleStatus, Hosts: serve.Hosts, Secure: serve.Certificate != "" || serve.Proxy, Logger: d.opts.Logger,
	})
	return err
}

func (d *Daemon) consoleStatus(ctx context.Context) console.Status {
	s := d.status(ctx)
	return console.Status{State: s.State, Version: s.Version, URL: s.URL, Since: s.Since, Hosts: s.Hosts, Runs: s.Runs}
}
