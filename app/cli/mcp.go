package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/system"
)

type mcpVerb struct {
	profiled
	How bool `help:"Serve nothing; print the command that makes Claude Code use this."`
}

// Run serves one agent host over stdin and stdout until the host hangs up or
// ctx ends. stdout carries the protocol and nothing else. SIGHUP has the
// configuration and the policies read again.
func (v *mcpVerb) Run(ctx context.Context, s *streams) error {
	if v.How {
		return v.printHow(s)
	}
	logger := newLogger(s.err, false, slog.LevelWarn)
	opened, err := v.open(ctx, s.err, system.Options{Serving: true, Tools: system.CachedThenServers, Logger: logger})
	if err != nil {
		return err
	}
	face, err := server.New(opened, opened.Runs(), server.Options{
		Version: version, Principal: system.Principal(), Profile: opened.Profile(), ServerIDs: opened.ServerIDs(), Approvals: opened.Approvals(), Logger: opened.Logger(), Gate: opened.Gate(),
		Files: opened.Attachments(), CallTool: opened.Face().CallTool, Similar: opened.Similar,
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

// printHow prints the command alone: it is there to be run.
func (v *mcpVerb) printHow(s *streams) error {
	c, err := v.loadPlaces()
	if err != nil {
		return err
	}
	if _, err := profileName(c, v.Profile); err != nil {
		return err
	}
	command, err := registerCommand(c, v.Profile)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, command)
	return err
}
