package daemon

import "github.com/airlock-mcp/airlock/internal/caller"

// everyone is a caller who sees all runs.
var everyone = caller.Caller{Principal: "test", Kind: caller.Local, Session: "test", Scopes: []string{caller.ScopeAllRuns}}
