package verb

import (
	"errors"
	"fmt"
	"os"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/store"
)

// Guarded returns an error if this process may not widen the authority of agents, because it may
// belong to an agent's host, see approval.WidenCheck. The message is
// "<what> is refused while agents are served".
func Guarded(what string) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	return refused(what, approval.WidenCheck(home))
}

// GuardedIn is Guarded also for the cluster of a configuration, see state.WidenCheck.
func GuardedIn(c *config.Config, what string) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	return refused(what, state.WidenCheck(c, home))
}

// refused returns the error of a guarded act.
func refused(what string, err error) error {
	switch {
	case errors.Is(err, approval.ErrOfHost), errors.Is(err, approval.ErrNoTerminal):
		return &Hinted{fmt.Errorf("%s is refused while agents are served: %w", what, err), ownTerminal, ExitRefused}
	}
	return err
}

// MayUse returns an error if a configuration is not confirmed and this process may belong to an
// agent's host. Otherwise a shell of the host could run a program under rules that it wrote.
func MayUse(c *config.Config) error {
	refused := GuardedIn(c, "a configuration that was not confirmed")
	if refused == nil {
		return nil
	}
	confirmed, err := rules.IsConfirmed(c)
	if err != nil || confirmed {
		return err
	}
	return refused
}

// ownTerminal is the hint of refused acts.
const ownTerminal = "do it in your own terminal: one that neither the agent's host nor the program that started " +
	"it has opened, such as another terminal program, a console or ssh"

// Announce makes this process known to Guarded, until the returned function is called.
func Announce(role approval.Role) (end func(), err error) {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return nil, err
	}
	return approval.Announce(home, role, nil)
}
