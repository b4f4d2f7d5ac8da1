package cluster

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// issue 28: a node puts a change in force that a person has confirmed on another machine with the same file.
func TestAConfirmationCountsAtAllNodes(t *testing.T) {
	g := newGroup(t)
	g.more = testenv.HostIsAProxy
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
	other.home = testenv.NewHome(t, g.built, g.images...)
	other.said("trust", "--yes", n.file)
	w.await(n, "confirmed", func() bool { return strings.Contains(n.get("/v1/servers", token), "beta") })
}

// A program that an agent's host starts puts no configuration in force, also not with another state directory and a
// file that it wrote (issue 23).
func TestAHostConfirmsNothingInACluster(t *testing.T) {
	g := newGroup(t)
	n := g.node("a").serve()
	_, token := n.token("run")
	if got := n.status(token); got != http.StatusOK { // from here on this process is a host
		t.Fatalf("the token: %d", got)
	}
	other := g.node("b")
	program := filepath.Join(t.TempDir(), "program.py")
	if err := os.WriteFile(program, []byte("print(1)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"trust", "--yes", other.file}, {"run", program},
		{"mcp"}, {"serve", "--listen", "127.0.0.1:0"}} {
		out, err := testenv.AtTerminal(t, other.plain(args...)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the agent's own host") {
			t.Errorf("airlock %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
