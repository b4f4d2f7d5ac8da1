package verb

import (
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// LocalCaller returns a caller for the user of the operating system, with a new session.
func LocalCaller() caller.Caller {
	return caller.Caller{Principal: setup.Principal(), Kind: caller.Local, Session: telemetry.NewID("ses")}
}
