// Package verb has what the verbs of the command line share: streams, exit codes, errors with hints,
// tables, the terminal, and how a verb reads the configuration and opens a system.
package verb

import (
	"io"

	"github.com/airlock-mcp/airlock/app/release"
)

// The exit codes of every verb.
const (
	ExitDone    = 0
	ExitFailed  = 1 // a run whose result is ok:false, a check that did not pass
	ExitUsage   = 2 // wrong usage or configuration
	ExitRefused = 3 // refused by policy
)

// Version is the version of this program.
const Version = release.Version

// Streams are the standard streams that a verb works with.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Hangup   *hangup
}
