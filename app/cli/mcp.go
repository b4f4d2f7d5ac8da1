package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/catalog"
)

type mcpVerb struct{ configFlag }

// Run serves one agent host over stdin and stdout until the host hangs up or
// ctx ends. stdout carries the protocol and nothing else.
func (v *mcpVerb) Run(ctx context.Context, s *streams) error {
	system, err := open(ctx, v.configFlag, s.err, purpose{serving: true})
	if err != nil {
		return err
	}
	face, err := server.New(system, system.orchestrator, server.Options{
		Version: version, Principal: principal(), ServerIDs: system.serverIDs(), Approvals: system.desk, Logger: system.logger,
	})
	if err != nil {
		return errors.Join(err, system.Close())
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { system.Snapshot().Search(catalog.Query{}) }) // builds the index before a model waits for it
	policies, accepted := time.NewTicker(operatorInterval), time.NewTicker(operatorInterval)
	defer policies.Stop()
	defer accepted.Stop()
	watch.Go(func() { system.watchPolicies(watching, policies.C) })
	watch.Go(func() { system.watchAccepted(watching, accepted.C) })
	err = face.Serve(ctx, s.in, s.out)
	face.Close()
	stop()
	watch.Wait()
	return errors.Join(err, system.Close())
}
