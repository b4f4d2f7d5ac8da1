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
		System: d.opts.System, Runs: d.opts.System.Runs(), RunLog: d.opts.System.RunLog(), Approvals: d.opts.System.Approvals(), Agents: d.known,
		Identify: d.identify.Token, Status: d.consoleStatus, Hosts: serve.Hosts, Clean: d.opts.System.Gate().Text, Secure: serve.Certificate != "" || serve.Proxy, Logger: d.opts.Logger,
	})
	if err == nil {
		d.undo.Add(d.console.Close)
	}
	return err
}

func (d *Daemon) consoleStatus(ctx context.Context) console.Status {
	s := d.status(ctx)
	load := d.opts.System.Load()
	status := console.Status{
		State: s.State, Version: s.Version, URL: s.URL, Since: s.Since, Hosts: s.Hosts, Runs: s.Runs,
		Sandboxes: load.Ready, Working: load.InUse, Waiting: load.Waiting,
	}
	if err := d.opts.System.Ready(ctx); err != nil {
		status.Problem = d.opts.System.Gate().Sentence(err.Error())
	}
	return status
}
