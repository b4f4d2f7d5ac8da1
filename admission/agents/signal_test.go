package agents_test

import (
	"errors"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
)

// K-021: signals are states.
func TestSignals(t *testing.T) {
	o := newOffice(t)
	a, _ := o.register("supervised", "")
	for _, c := range []struct {
		signal agents.Signal
		want   agents.Status
		ok     bool
	}{
		{agents.SIGCONT, agents.Active, true}, {agents.SIGSTOP, agents.Suspended, true}, {agents.SIGSTOP, agents.Suspended, true},
		{agents.SIGCONT, agents.Active, true}, {"SIGTERM", agents.Active, false}, {"sigkill", agents.Active, false}, {"", agents.Active, false},
		{agents.SIGSTOP, agents.Suspended, true}, {agents.SIGKILL, agents.Killed, true}, {agents.SIGCONT, agents.Killed, false}, {agents.SIGKILL, agents.Killed, true},
	} {
		err := o.Signal(t.Context(), a.ID, c.signal, "ann")
		found, wrong := o.Find(t.Context(), a.ID)
		if (err == nil) != c.ok || wrong != nil || found.Status != c.want {
			t.Errorf("%s: %v, %s, %v; want %s", c.signal, err, found.Status, wrong, c.want)
		}
	}
	if err := o.Signal(t.Context(), "none", agents.SIGSTOP, "ann"); !errors.Is(err, agents.ErrUnknown) {
		t.Error(err)
	}
}
