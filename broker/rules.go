package broker

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/policies"
)

// Rules are the operator's settings that can be changed while calls are made. The zero value denies
// everything.
type Rules struct {
	Policies *policies.Engine  // nil denies everything
	Operator policies.Operator // the configuration of servers
	Limits   Limits            // zero members mean DefaultLimits
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

// SetRules replaces all rules at once, after recording the change, its author and a description. A
// call that is being decided keeps its rules. An approval given under other rules is not valid. New
// rates apply at once, other limits to runs that start later.
func (b *Broker) SetRules(ctx context.Context, rules Rules, by, what string) error {
	next, err := rules.withDefaults()
	if err != nil {
		return fmt.Errorf("changing the rules: %w", err)
	}
	r := audit.Record{Kind: audit.KindOperator, Identity: audit.Identity{Principal: by}, Detail: what}
	r.PolicyVersion = next.Policies.Version()
	if err := b.recorder.Append(ctx, r); err != nil {
		return fmt.Errorf("changing the rules: %w", err)
	}
	b.rules.Store(next)
	return nil
}
