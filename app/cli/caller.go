package cli

import "github.com/airlock-mcp/airlock/internal/caller"

// localCaller is the user of the operating system, in a session of its own.
func localCaller() caller.Caller {
	return caller.Caller{Principal: principal(), Kind: caller.Local, Session: newSessionID()}
}
