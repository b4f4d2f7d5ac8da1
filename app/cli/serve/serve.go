// Package serve has the verbs that start, inspect and stop the daemon.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/airlock-mcp/airlock/app/cli/hosts"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/app/upstreams"
)

// Verb is airlock serve.
type Verb struct {
	verb.ConfigFlag
	Listen string `placeholder:"ADDRESS" help:"The address and port, in place of serve.listen; port 0 takes a free one."`
	Detach bool   `help:"Go on in the background once it can be reached; airlock stop ends it."`

	Detached bool `hidden:"" help:"This is the daemon that --detach started."`
}

// Run serves until ctx ends or `airlock stop` is called, and then finishes the requests in
// progress. It prints the address on stdout when the address can be reached. SIGHUP reloads the
// configuration and the policies.
func (v *Verb) Run(ctx context.Context, s *verb.Streams) error {
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	if v.Listen != "" {
		c.Serve.Listen = v.Listen
	}
	if v.Detach {
		return v.detach(ctx, s)
	}
	if v.Detached {
		s.Err = newServeLog(s.Err)
	}
	listener, err := daemon.Listen(ctx, c)
	if err != nil {
		return err
	}
	defer listener.Close() // it may be closed already, so the error is ignored
	exporter, logger, end, err := verb.BeginExport(ctx, verb.NewLogger(s.Err, false, slog.LevelWarn), true)
	if err != nil {
		return err
	}
	defer end()
	opened, err := verb.OpenSystem(ctx, c, s.Err, system.Options{
		Serving: true, Durable: true, Environ: os.Environ(), Thorough: true, Tools: upstreams.CachedThenServers,
		Logger: logger, Reread: verb.Reread(c, v.Listen),
	})
	if err != nil {
		return err
	}
	d, err := daemon.New(ctx, daemon.Options{Config: c, System: opened, Version: verb.Version, URL: listener.URL(),
		Metrics: exporter.Handler(), Logger: opened.Logger(), Gateway: hosts.GatewaySettings()})
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { opened.Watch(watching) })
	s.Hangup.Reloads(func() {
		daemon.NotifyReloading()
		opened.Reload(watching)
		if err := listener.Reread(); err != nil {
			opened.Logger().WarnContext(watching, daemon.CertificateStays, slog.Any("error", err))
		}
		daemon.Notify("READY=1")
	})
	fmt.Fprintf(s.Out, "%s\n", listener.URL())
	if c.Serve.Console {
		fmt.Fprintf(s.Err, "airlock: the console is at %s/; airlock console prints a link that signs in\n",
			d.ConsoleURL())
	}
	daemon.Notify("READY=1")
	err = d.Serve(ctx, listener)
	s.Hangup.Reloads(nil)
	stop()
	watch.Wait()
	return errors.Join(err, d.Close(), opened.Close())
}
