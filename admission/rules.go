package admission

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/policies"
)

// Rules are the operator's settings that can be changed while calls are made. The zero value denies
// everything.
type Rules struct {
	Policies *policies.Engine  // nil denies everything
	Operator policies.Operator // the configuration of servers
	Limits   Limits            // zero members mean DefaultLimits
	// Profiles are the profiles of callers, by name. A run of a caller with an unknown profile is
	// refused.
	Profiles map[string]*catalog.Profile
	// Elicitation contains the servers that may ask the person behind a call, if the rules permit
	// it and the Upstream is a RelayingUpstream.
	Elicitation map[string]bool
}

// withDefaults returns a copy with defaults for missing limits.
func (r Rules) withDefaults() (*Rules, error) {
	limits, err := r.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	r.Limits = limits
	return &r, nil
}

// Rules returns the rules in force. The caller must not modify them.
func (s *Service) Rules() *Rules { return s.rules.Load() }

// SetRules replaces all rules at once, after recording the change, its author and a description. A
// call that is being decided keeps its rules. An approval given under other rules is not valid. New
// rates apply at once, other limits to runs that start later.
func (s *Service) SetRules(ctx context.Context, rules Rules, by, what string) error {
	next, err := rules.withDefaults()
	if err != nil {
		return fmt.Errorf("changing the rules: %w", err)
	}
	r := audit.Record{Kind: audit.KindOperator, Identity: audit.Identity{Principal: by}, Detail: what}
	r.PolicyVersion = next.Policies.Version()
	if err := s.opts.Log.Append(ctx, r); err != nil {
		return fmt.Errorf("changing the rules: %w", err)
	}
	s.rules.Store(next)
	return nil
}
