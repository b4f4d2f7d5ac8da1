package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/objects/objectstest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// verified is what `airlock audit verify --cluster --json` prints.
type verified struct {
	Leaves   int
	Findings []string
	Nodes    []struct {
		Node, Missing, Expired, Source string
		Report                         *struct {
			Last     int
			Findings []struct{ Text string }
		}
	}
}

// verifyAll verifies the logs of all nodes, and returns whether they are sound, too.
func (n *node) verifyAll() (got verified, sound bool) {
	n.Helper()
	cmd := n.command("audit", "verify", "--cluster", "--json")
	cmd.Stderr = n.Output()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.Fatal(err)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		n.Fatalf("%v in %s", err, out)
	}
	return got, err == nil
}

// end ends a node with a signal.
func (n *node) end(signal os.Signal) {
	n.Helper()
	_ = n.process.Process.Signal(signal) // it may have ended
	_ = n.process.Wait()
}

// checkCluster returns what `airlock doctor --json` finds about the cluster.
func (n *node) checkCluster() string {
	n.Helper()
	out, err := n.command("doctor", "--json").Output()
	var exit *exec.ExitError // other checks may fail on this machine
	if err != nil && !errors.As(err, &exit) {
		n.Fatal(err)
	}
	return find(n.T, string(out), `({"name":"cluster"[^}]*})`)
}

// issue 28: with audit.durability: replicated, the records of a node that disappears with its disk are all proved by
// copies in the object store and the database.
func TestRecordsAreReplicated(t *testing.T) {
	server := objectstest.Start(t)
	g := newGroup(t)
	g.more = "  objects: " + server.Address("logs") + "\naudit: {durability: replicated}\n"
	a, b := g.node("a").serve(), g.node("b").serve()
	if found := a.checkCluster(); !strings.Contains(found, "2 nodes; objects can be stored and read") {
		t.Errorf("airlock doctor: %s", found)
	}
	_, token := a.token("run,agents")
	worker := a.register(token, "autonomous", 100)
	for i := range 20 {
		b.announce(worker, fmt.Sprint("action ", i), "calculate")
	}
	b.end(syscall.SIGKILL)
	if err := os.RemoveAll(b.home); err != nil {
		t.Fatal(err)
	}
	got, sound := a.verifyAll()
	if !sound || len(got.Nodes) != 2 || got.Nodes[1].Source != "copies" || got.Nodes[1].Report.Last < 20 {
		t.Errorf("got %+v", got)
	}
	server.Stop()
	if found := a.checkCluster(); !strings.Contains(found, "the object store") ||
		!strings.Contains(found, "check cluster.objects") {
		t.Errorf("airlock doctor without the object store: %s", found)
	}
	server.Run()
	to := filepath.Join(t.TempDir(), "logs")
	a.said("audit", "export", "--cluster", "--to", to)
	names, err := filepath.Glob(to + "/b-*")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if text, err := os.ReadFile(names[0]); err != nil || strings.Count(string(text), `"kind":"action"`) != 20 {
		t.Errorf("the copy has %d actions (%v)", strings.Count(string(text), `"kind":"action"`), err)
	}
	if err := databasetest.Execute(t.Context(), g.address, "UPDATE audit_tail SET sealed = 'damaged'"); err != nil {
		t.Fatal(err)
	}
	got, sound = a.verifyAll()
	if sound || len(got.Nodes) != 2 || got.Nodes[0].Report == nil ||
		!strings.Contains(got.Nodes[1].Missing, "a copy of its records cannot be read") {
		t.Errorf("a copy that cannot be decrypted: got %+v", got)
	}
}

// follow returns the lines that airlock audit tail --follow prints of new records of all nodes.
func follow(t *testing.T, n *node) iter.Seq[string] {
	t.Helper()
	cmd := testenv.AtTerminal(t, n.command("audit", "tail", "--cluster", "--follow", "-n", "1"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("airlock audit tail --follow: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() { // the newest record; now it follows
		t.Fatal("airlock audit tail --follow printed nothing")
	}
	return func(yield func(string) bool) {
		for lines.Scan() {
			if !yield(lines.Text()) {
				return
			}
		}
		t.Error("airlock audit tail --follow ended")
	}
}

// readAll reads the logs of all nodes with the other commands.
func readAll(t *testing.T, nodes []*node, token string) {
	t.Helper()
	host := (&rotating{nodes: nodes[1:2], token: token}).host(t, "/mcp", revisions[1])
	followed := follow(t, nodes[0])
	run := find(t, call(t, host, "run_code", map[string]any{"language": "python", "code": "result = 1"}), runID)
	for line := range followed {
		if strings.HasPrefix(line, "b ") && strings.Contains(line, run) {
			break
		}
		if !strings.HasPrefix(line, "b ") {
			t.Errorf("audit tail --follow printed a record that was there before: %s", line)
		}
	}
	a := nodes[0]
	if shown := a.said("audit", "show", run, "--cluster"); !strings.Contains(shown, "node b") ||
		strings.Contains(shown, "node a") || !strings.Contains(shown, run) {
		t.Errorf("audit show: %s", shown)
	}
	tail := a.said("audit", "tail", "--cluster", "--since", "1h")
	for _, name := range []string{"a ", "b ", "c "} {
		if !strings.Contains("\n"+tail, "\n"+name) {
			t.Errorf("audit tail lacks the records of node %s: %s", name, tail)
		}
	}
	if newest := a.said("audit", "tail", "--cluster", "-n", "1", "--json"); strings.Count(newest, "\n") != 1 ||
		!strings.Contains(newest, `"node":"b"`) || !strings.Contains(newest, run) {
		t.Errorf("the newest record is %s", newest)
	}
	to := filepath.Join(t.TempDir(), "logs")
	written := a.said("audit", "export", "--cluster", "--to", to)
	files, err := os.ReadDir(to)
	if err != nil || len(files) != 3 || strings.Count(written, to) != 3 {
		t.Errorf("audit export: %s, %v, %v", written, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(to, file.Name()))
		if err != nil || strings.Contains(string(text), run) != strings.HasPrefix(file.Name(), "b-") ||
			!strings.Contains(string(text), `"kind":"log_start"`) {
			t.Errorf("%s: %v\n%s", file.Name(), err, text)
		}
	}
}

// issue 28: the audit logs of all nodes are verified with one command, at each of them. A log that is lost with its
// disk, or was put back to an earlier state, is found, and what is missing is named.
func TestTheAuditLogsOfAllNodes(t *testing.T) {
	g := newGroup(t)
	g.more = "audit: {keep: 720h}\n"
	nodes := []*node{g.node("a").serve(), g.node("b").serve(), g.node("c").serve()}
	a, b, c := nodes[0], nodes[1], nodes[2]
	_, token := a.token("run,agents")
	worker := a.register(token, "autonomous", 100)
	work := func(n *node) { n.announce(worker, "at "+n.url, "calculate") }
	for _, n := range nodes {
		work(n)
	}
	earlier := filepath.Join(t.TempDir(), "earlier")
	b.end(syscall.SIGTERM)
	if out, err := exec.Command("cp", "-a", b.home, earlier).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	b.serve()
	work(b)
	for _, n := range nodes {
		got, sound := n.verifyAll()
		if !sound || len(got.Nodes) != 3 || got.Leaves < 3 {
			t.Errorf("at %s: got %+v", n.file, got)
		}
	}
	readAll(t, nodes, token)

	c.end(syscall.SIGKILL)
	if err := os.RemoveAll(filepath.Join(c.home, "audit")); err != nil {
		t.Fatal(err)
	}
	got, sound := a.verifyAll()
	if sound || len(got.Nodes) != 3 || !strings.Contains(got.Nodes[2].Missing, "records 1 to ") ||
		got.Nodes[0].Missing+got.Nodes[1].Missing != "" {
		t.Errorf("the log of c is lost: got %+v", got)
	}
	t.Run("after audit.keep", func(t *testing.T) {
		var listed struct{ Nodes []struct{ State string } }
		testenv.Await(t, "node c is silent", func() bool {
			a.airlock(&listed, "status", "--cluster")
			return listed.Nodes[2].State == "silent"
		})
		later := *a
		later.program = ahead(t, 721*time.Hour)
		if got, sound := later.verifyAll(); !sound || len(got.Nodes) != 3 || got.Nodes[2].Missing != "" ||
			!strings.Contains(got.Nodes[2].Expired, "records 1 to ") {
			t.Errorf("got %+v", got)
		}
	})

	b.end(syscall.SIGTERM)
	if out, err := exec.Command("sh", "-c", `rm -r "$1" && cp -a "$2" "$1"`, "sh", b.home, earlier).
		CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if got, sound = b.verifyAll(); sound || got.Nodes[1].Report == nil || len(got.Nodes[1].Report.Findings) == 0 {
		t.Errorf("the log of b was put back: got %+v", got)
	}
	out, err := b.command("serve", "--listen", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "knows another history of the log") ||
		!strings.Contains(string(out), "hint: ") {
		t.Errorf("a node whose log was put back: %v\n%s", err, out)
	}
	if out, err := g.command("audit", "verify", "--cluster").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "not part of a cluster") {
		t.Errorf("without a cluster: %v\n%s", err, out)
	}
}
