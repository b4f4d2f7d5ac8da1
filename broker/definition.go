package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// Definitions returns current definitions of tools. A run has a snapshot of the definitions at its
// start.
type Definitions interface {
	// Current returns the current snapshot, with the tool as its server defines it. If again is
	// set, the server is queried; otherwise cached data is used. Current is safe for concurrent use
	// and returns when ctx ends.
	Current(ctx context.Context, serverID, name string, again bool) (*catalog.Snapshot, error)
}

// compareDefinition refuses a call if the definition of its tool has changed since the decision,
// because no rule and no person has agreed to the new one. If the call is permitted by a person's
// answer, including a grant for the run, the server itself is queried.
func (a *attempt) compareDefinition(ctx context.Context) *failure {
	if a.broker.opts.Definitions == nil {
		return nil
	}
	answered := len(a.ruling.Approve) > 0
	now, err := a.broker.opts.Definitions.Current(ctx, a.tool.ServerID, a.tool.Name, answered)
	switch {
	case ctx.Err() != nil:
		return a.cut(ctx)
	case err != nil && answered:
		f := failf(errortype.Transient,
			"the server cannot be asked whether the tool is still what was approved, so the call was not made").because(
			err).retryable()
		f.refused = true
		return f
	case err != nil:
		return nil // the call itself will fail for the same reason
	case now == a.run.snapshot:
		return nil
	}
	tool, err := now.Lookup(a.tool.ServerID, a.tool.Name)
	switch {
	case err != nil:
		return a.changed(err.Error())
	case tool.Digest != a.tool.Digest:
		return a.changed(fmt.Sprintf("its definition is %s, and was %s", tool.Digest, a.tool.Digest))
	case !slices.Equal(a.run.flagsIn(now, tool), a.settings.Flags):
		return a.changed("what is suspicious about it is not the same")
	}
	return nil
}

// changed returns the failure of a call whose tool definition has changed.
func (a *attempt) changed(how string) *failure {
	f := failf(errortype.PolicyDenied,
		"the tool %q of the server %q changed since the run began, so the call was not made: run the code again to "+
			"use it as it is now", a.tool.Name, a.tool.ServerID)
	f.refused, f.detail = true, "the definition changed: "+how
	return f
}
