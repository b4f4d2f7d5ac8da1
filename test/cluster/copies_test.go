package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// issue 28: when a node is lost with its disk, another one answers for the files that its runs have attached, to their
// owner alone, and replays their recordings.
func TestFilesOfALostNode(t *testing.T) {
	g := newGroup(t)
	g.more = fmt.Sprintf("  objects: %q\n", "file://"+t.TempDir())
	a, b := g.node("a").serve(), g.node("b").serve()
	_, token := a.token("run")
	_, others := a.token("run")
	atA := (&rotating{nodes: []*node{a}, token: token}).host(t, "/mcp", revisions[1])
	run := find(t, call(t, atA, "run_code", map[string]any{"language": "python",
		"code": "client.attach(b'a,b', 'text/csv', 'table.csv')\nresult = 42"}), runID)
	read := func(token string) (string, error) {
		host := (&rotating{nodes: []*node{b}, token: token}).host(t, "/mcp", revisions[1])
		res, err := host.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "airlock://runs/" + run + "/table.csv"})
		if err != nil {
			return "", err
		}
		return res.Contents[0].Text, nil
	}
	if text, err := read(token); err != nil || text != "a,b" {
		t.Errorf("while node a is up: %q, %v", text, err)
	}
	w := &suspendedRuns{t: t}
	objects := strings.TrimPrefix(strings.Trim(strings.TrimPrefix(g.more, "  objects: "), "\"\n"), "file://")
	w.await(a, "copied", func() bool {
		_, files := os.Stat(objects + "/runs/" + run + "/files")
		_, recording := os.Stat(objects + "/runs/" + run + "/recording")
		return files == nil && recording == nil
	})
	if err := a.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.process.Wait() // it was killed
	for _, lost := range []string{"attachments", "recordings", "keys"} {
		if err := os.RemoveAll(a.home + "/" + lost); err != nil {
			t.Fatal(err)
		}
	}
	w.await(b, "answering for node a", func() bool { text, err := read(token); return err == nil && text == "a,b" })
	if text, err := read(others); err == nil {
		t.Errorf("another token reads %q", text)
	}
	if out, err := b.command("replay", run).CombinedOutput(); err != nil {
		t.Errorf("a replay at node b: %v\n%s", err, out)
	}
}
