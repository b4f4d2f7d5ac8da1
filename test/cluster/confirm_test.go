package cluster

import (
	"os"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// issue 28: a node puts a change in force that a person has confirmed on another machine with the same file.
func TestAConfirmationCountsAtAllNodes(t *testing.T) {
	g := newGroup(t)
	n := g.node("a").serve()
	_, token := n.token("run")
	text, err := os.ReadFile(n.file)
	if err == nil {
		err = os.WriteFile(n.file, append(text, "mcpServers: {beta: {url: 'http://127.0.0.1:1/mcp'}}\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &suspendedRuns{t: t}
	w.await(n, "waiting", func() bool { return strings.Contains(n.said("status"), "airlock trust") })
	if list := n.get("/v1/servers", token); strings.Contains(list, "beta") {
		t.Errorf("the server is there before the confirmation: %s", list)
	}
	other := *n
	other.home = testenv.NewHome(t, g.built)
	other.said("trust", "--yes", n.file)
	w.await(n, "confirmed", func() bool { return strings.Contains(n.get("/v1/servers", token), "beta") })
}
