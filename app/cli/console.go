package cli

import (
	"fmt"

	"github.com/airlock-mcp/airlock/app/daemon"
)

type consoleVerb struct {
	configFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints a link that signs in to the console of the running daemon. If this process may not
// approve calls, for example because an agent's host started it, the session that the link opens
// may not approve calls either.
func (v *consoleVerb) Run(s *streams) error {
	link, err := daemon.ConsoleLink()
	if err != nil {
		return noDaemon(err)
	}
	if v.JSON {
		return printLine(s.out, link)
	}
	if _, err := fmt.Fprintln(s.out, link.URL); err != nil {
		return err
	}
	fmt.Fprintln(s.err, "airlock: open it within two minutes; it works once")
	if link.Limited != "" {
		fmt.Fprintf(s.err, "airlock: who uses it cannot answer questions, or accept what changed: %s\nhint: run airlock console in a terminal of your own\n", link.Limited)
	}
	return nil
}
