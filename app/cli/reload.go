package cli

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// operatorInterval is how often Airlock looks, while it serves, for what the
// operator has changed: policy files, and accepted tools.
const operatorInterval = 2 * time.Second

// watchPolicies puts changed policy files in force until ctx ends: all of them
// or none. While they have a mistake, the rules that were in force stay so. It
// looks at each tick.
func (s *system) watchPolicies(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		files, err := policyFiles(s.config)
		if err == nil && sources(files) == s.policySources {
			continue
		}
		s.policySources = sources(files)
		if err == nil {
			err = s.putInForce(ctx, files)
		}
		if err != nil {
			s.logger.ErrorContext(ctx, "the changed policies are not in force; those before them still are", slog.Any(telemetry.KeyError, err))
		}
	}
}

// watchAccepted puts tools into use as soon as an operator has accepted their
// changed definitions, until ctx ends. It looks at each tick.
func (s *system) watchAccepted(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			s.takeAccepted(ctx)
		}
	}
}

func (s *system) putInForce(ctx context.Context, files []policies.File) error {
	engine, err := policies.Load(files...)
	if err != nil {
		return err
	}
	if err := s.broker.SetPolicies(ctx, engine, principal()); err != nil {
		return err
	}
	s.logger.WarnContext(ctx, "changed policies are in force", slog.String("version", engine.Version()))
	return nil
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
