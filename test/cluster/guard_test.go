package cluster

import (
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// issue 23: a process of a host that is connected to one node makes no token that administers at another node of the
// same machine. The host is this process.
func TestAHostOfOneNodeWidensNothingAtAnother(t *testing.T) {
	g := newGroup(t)
	a, b := g.node("a"), g.node("b")
	_, token := a.token("run")
	a.serve()
	b.serve()
	widen := func() (said string, isRefused bool) {
		out, err := testenv.AtTerminal(t, b.command("tokens", "create", "x", "--scope", "admin")).CombinedOutput()
		return string(out), err != nil
	}
	if said, isRefused := widen(); isRefused {
		t.Fatalf("no host is connected: %s", said)
	}
	host := (&rotating{nodes: []*node{a}, token: token}).host(t, "/mcp", revisions[1])
	call(t, host, "search_tools", map[string]any{"query": "alpha"})
	if said, isRefused := widen(); !isRefused || !strings.Contains(said, "refused while agents are served") {
		t.Errorf("a host is connected to the other node: %s", said)
	}
}
