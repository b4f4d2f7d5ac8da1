package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/agekey"
)

// The key of a cluster is replaced while it serves, as docs/cluster.md describes it. A run that was suspended before
// goes on afterwards, and files of agents can be read (issue 28).
func TestTheKeyIsReplaced(t *testing.T) {
	g, c := newSuspendingGroup(t)
	objects := t.TempDir()
	g.more = fmt.Sprintf("  objects: %q\n", "file://"+objects) + g.more
	nodes := []*node{g.node("a").serve(), g.node("b").serve()}
	_, token := nodes[0].token("run,agents")
	worker := nodes[0].register(token, "autonomous", 100)
	kernel := func(n *node, action string, params map[string]any) string {
		t.Helper()
		host := (&rotating{nodes: []*node{n}, token: token}).host(t, "/kernel/mcp", revisions[1])
		res, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "kernel_execute", Arguments: map[string]any{
			"action": action, "agent_id": worker.id, "params": params}})
		if err != nil || res.IsError {
			t.Fatalf("%s: %v, %+v", action, err, res)
		}
		return res.Content[0].(*mcp.TextContent).Text
	}
	kernel(nodes[0], "file_write", map[string]any{"path": "kept", "content": "the file"})
	waiting := beginWaiting(t, nodes[0], "key-")
	host := (&rotating{nodes: nodes[:1], token: token}).host(t, "/mcp", revisions[1])
	ended := find(t, call(t, host, "run_code", map[string]any{"language": "python",
		"code": "client.attach(b'a,b', 'text/csv', 'table.csv')"}), runID)
	attached := filepath.Join(objects, "runs", ended, "files")
	waiting.await(nodes[0], "copied", func() bool { _, err := os.Stat(attached); return err == nil })

	fresh := filepath.Join(t.TempDir(), "new.key")
	if out, err := g.command("cluster", "key", fresh).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	former, err := os.ReadFile(g.key)
	if err != nil {
		t.Fatal(err)
	}
	next, err := os.ReadFile(fresh)
	if err != nil {
		t.Fatal(err)
	}
	use := func(key string) {
		t.Helper()
		if err := os.WriteFile(g.key, []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, n := range nodes {
			_ = n.process.Process.Signal(syscall.SIGTERM)
			if err := n.process.Wait(); err != nil {
				t.Error(err)
			}
			n.serve()
			for _, n := range nodes { // also with nodes that have another key first
				if got := kernel(n, "file_read", map[string]any{"path": "kept"}); !strings.Contains(got, "the file") {
					t.Errorf("after the restart of node %d: %s", i, got)
				}
			}
		}
	}
	use(string(former) + string(next))
	use(string(next) + string(former))
	var done struct{ Changed int }
	nodes[0].airlock(&done, "cluster", "reencrypt")
	if done.Changed < 4 { // the file, the copy, and two suspended runs with their files
		t.Errorf("%d values were encrypted again", done.Changed)
	}
	if nodes[1].airlock(&done, "cluster", "reencrypt"); done.Changed != 0 {
		t.Errorf("%d values were encrypted once more", done.Changed)
	}
	key, err := agekey.Parse(fresh, next)
	if err != nil {
		t.Fatal(err)
	}
	if sealed, err := os.ReadFile(attached); err != nil {
		t.Error(err)
	} else if _, err := agekey.Open(sealed, key); err != nil {
		t.Errorf("the copy of a run: %v", err)
	}
	use(string(next))
	waiting.approve(nodes[0])
	waiting.await(nodes[0], "suspended again", func() bool {
		return c.of("key-python-1")+c.of("key-node-1") == 2 && nodes[0].suspended()+nodes[1].suspended() == 2
	})
	waiting.approve(nodes[0])
	waiting.ended(nodes[1])
	if c.of("key-python-1") != 1 || c.of("key-node-2") != 1 {
		t.Errorf("the calls were made %v times", c.made)
	}

	if err := os.WriteFile(g.key, former, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := g.node("c").command("serve", "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not the key of the cluster") {
		t.Errorf("a node with the former key: %v\n%s", err, out)
	}
}
