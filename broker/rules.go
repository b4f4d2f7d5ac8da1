package broker

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/policies"
)

// Rules are what an operator decides, and may decide anew while calls are made.
// The zero value denies everything.
type Rules struct {
	Policies *policies.Engine  // nil denies everything
	Operator policies.Operator // what the configuration says about servers
	Limits   Limits            // zero members mean DefaultLimits
}

// withDefaults returns a copy with the limits that were left out.
func (r Rules) withDefaults() (*Rules, error) {
	limits, err := r.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	r.Limits = limits
	return &r, nil
}

// SetRules replaces all rules at once, after it has recorded that it will, by
// whom and what is new. A call that is being decided keeps the rules it began
// with; an approval given under other rules does not hold. Rates are in force at
// once, the other limits for runs that begin later.
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
