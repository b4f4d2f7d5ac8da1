package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/store"
)

// guarded returns an error if this process may not widen the authority of agents, because it may
// belong to an agent's host, see approval.WidenCheck. The message is
// "<what> is refused while agents are served".
func guarded(what string) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	err = approval.WidenCheck(home)
	switch {
	case errors.Is(err, approval.ErrOfHost), errors.Is(err, approval.ErrNoTerminal):
		return &hinted{fmt.Errorf("%s is refused while agents are served: %w", what, err), ownTerminal, ExitRefused}
	}
	return err
}

// ownTerminal is the hint of guarded.
const ownTerminal = "do it in a terminal of your own: one that neither the agent's host nor the program that started it has opened, such as another terminal program, a console or ssh"

// announce makes this process known to guarded, until the returned function is called.
func announce(role approval.Role) (end func(), err error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	return approval.Announce(home, role)
}
