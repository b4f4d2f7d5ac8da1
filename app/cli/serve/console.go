package serve

import (
	"fmt"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
)

// Console is airlock console.
type Console struct {
	verb.ConfigFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints a link that signs in to the console of the running daemon. If this process may not
// approve calls, for example because an agent's host started it, the session that the link opens
// may not approve calls either.
func (v *Console) Run(s *verb.Streams) error {
	link, err := daemon.ConsoleLink()
	if err != nil {
		return verb.NoDaemon(err)
	}
	if v.JSON {
		return verb.PrintLine(s.Out, link)
	}
	if _, err := fmt.Fprintln(s.Out, link.URL); err != nil {
		return err
	}
	fmt.Fprintln(s.Err, "airlock: open it within two minutes; it works once")
	if link.Limited != "" {
		fmt.Fprintf(s.Err, "airlock: who uses it cannot answer questions, or accept what changed: %s\nhint: run "+
			"airlock console in your own terminal\n", link.Limited)
	}
	return nil
}
