package system

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// operatorInterval is how often Airlock looks, while it serves, for what the
// operator has changed: policy files, and accepted tools.
const operatorInterval = 2 * time.Second

// Watch puts into force what the operator changes while the system serves:
// policy files, tools that were accepted, and lists that it wants read again. It
// makes sandboxes ready first, in the background. It returns when ctx ends.
func (s *System) Watch(ctx context.Context) {
	var watch sync.WaitGroup
	watch.Go(func() { s.catalog.warm(ctx) })
	policies, accepted, refreshes := time.NewTicker(operatorInterval), time.NewTicker(operatorInterval), time.NewTicker(operatorInterval)
	defer policies.Stop()
	defer accepted.Stop()
	defer refreshes.Stop()
	watch.Go(func() { s.watchPolicies(ctx, policies.C) })
	watch.Go(func() { s.watchAccepted(ctx, accepted.C) })
	watch.Go(func() { s.catalog.watchRefreshes(ctx, refreshes.C) })
	watch.Wait()
}

// watchPolicies puts changed policy files in force until ctx ends: all of them
// or none. While they have a mistake, the rules that were in force stay so. It
// looks at each tick.
func (s *System) watchPolicies(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		files, err := PolicyFiles(s.config)
		if err == nil && sources(files) == s.rules.sources {
			continue
		}
		s.rules.sources = sources(files)
		if err == nil {
			err = s.putInForce(ctx, files)
		}
		if err != nil {
			s.opts.Logger.ErrorContext(ctx, "the changed policies are not in force; those before them still are", slog.Any(telemetry.KeyError, err))
		}
	}
}

// watchAccepted puts tools into use as soon as an operator has accepted their
// changed definitions, until ctx ends. It looks at each tick.
func (s *System) watchAccepted(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			s.catalog.takeAccepted(ctx)
		}
	}
}

func (s *System) putInForce(ctx context.Context, files []policies.File) error {
	engine, err := policies.Load(files...)
	if err != nil {
		return err
	}
	operator, err := OperatorSettings(s.config)
	if err != nil {
		return err
	}
	rules := broker.Rules{Policies: engine, Operator: operator, Limits: callLimits(s.config)}
	if err := s.broker.SetRules(ctx, rules, Principal(), "other policies are in force"); err != nil {
		return err
	}
	s.opts.Logger.WarnContext(ctx, "changed policies are in force", slog.String("version", engine.Version()))
	return nil
}

// rules is what is known about the policies that are in force. Only the watcher
// of the policy files writes it.
type rules struct {
	sources [sha256.Size]byte // of the policy files as they were read last
}

// sources digests policy files, to notice that one has changed.
func sources(files []policies.File) [sha256.Size]byte {
	hash := sha256.New()
	for _, file := range files {
		digest := sha256.Sum256(file.Source)
		hash.Write([]byte(file.Name)) // never fails
		hash.Write(digest[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
