package upstreams

import (
	"context"
	"log/slog"
	"net"

	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/state"
)

// Options are the options of Open. Version, Logger, Notify, and Redactors are required.
type Options struct {
	Version string       // Airlock's own, as servers see it
	Logger  *slog.Logger // redacts
	// Notify is called with notices for people, which are redacted. It must be safe for concurrent use.
	Notify func(Notice)
	// Serving prepares the tools for searches.
	Serving bool
	// Tools is the source of the first list of tools.
	Tools ToolSource
	// Profile is the profile of all callers; servers outside of it are not started. If it is empty,
	// each caller has its own profile or none.
	Profile string
	// Dial opens the permitted connections of contained servers; nil means to public addresses only.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Trial is the trial of a contained server; nil means none.
	Trial     *contained.Trial
	Redactors *Redactors
	State     *state.State // nil: the catalog opens and closes it

	ownsState bool // Close closes State
}

// Notice is one sentence for a person, with advice.
type Notice struct {
	Text, Hint string
	Server     string // the server that it is about; may be empty
}
