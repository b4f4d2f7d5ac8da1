package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/system"
)

type mcpVerb struct{ configFlag }

// Run serves one agent host over stdin and stdout until the host hangs up or
// ctx ends. stdout carries the protocol and nothing else. SIGHUP has the
// configuration and the policies read again.
func (v *mcpVerb) Run(ctx context.Context, s *streams) error {
	logger := newLogger(s.err, false, slog.LevelWarn)
	opened, err := v.open(ctx, s.err, system.Options{Serving: true, Tools: system.CachedThenServers, Logger: logger})
	if err != nil {
		return err
	}
	face, err := server.New(opened, opened.Runs(), server.Options{
		Version: version, Principal: system.Principal(), ServerIDs: opened.ServerIDs(), Approvals: opened.Approvals(), Logger: logger,
	})
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { opened.Watch(watching) })
	s.hangup.reloads(func() { opened.Reload(watching) })
	err = face.Serve(ctx, s.in, s.out)
	face.Close()
	s.hangup.reloads(nil)
	stop()
	watch.Wait()
	return errors.Join(err, opened.Close())
}
