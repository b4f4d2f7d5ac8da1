package cluster

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tokenOf returns a token of a person.
func (n *node) tokenOf(person, scopes string) string {
	n.Helper()
	var made madeToken
	n.airlock(&made, "tokens", "create", "laptop", "--for", person, "--scope", scopes)
	return made.Token
}

// lostRun is a run of node a, which is lost with its disk later.
type lostRun struct {
	*suspendedRuns
	a, b     *node
	id       string
	ann, ben string // tokens; ann has begun the run
}

const lostNode = "Node a does not answer or has lost its log, so these are copies of its records"

func beginLost(t *testing.T, g *group) *lostRun {
	l := &lostRun{suspendedRuns: &suspendedRuns{t: t}, a: g.node("a").serve(), b: g.node("b").serve()}
	l.ann, l.ben = l.a.tokenOf("ann", "run,audit"), l.a.tokenOf("ben", "run")
	host := (&rotating{nodes: []*node{l.a}, token: l.ann}).host(t, "/mcp", revisions[1])
	const program = "from servers.alpha import change\nclient.attach(b'a,b', 'text/csv', 'table.csv')\n" +
		"result = [await change({}), 6 * 7]"
	for range 2 { // when the second one makes its call, all records of the first one are replicated
		begun := call(t, host, "run_code", map[string]any{"language": "python", "code": program})
		l.id = cmp.Or(l.id, find(t, begun, runID))
	}
	return l
}

// awaitCopies waits until the database has the copies of the run's files and of its recording, and a number of copies
// of node a's first log file. It has them after the object store.
func (l *lostRun) awaitCopies(g *group, full int) {
	l.t.Helper()
	db := g.database()
	l.await(l.a, "copied", func() bool {
		var ofRun, ofLog int
		err := db.QueryRow(l.t.Context(), `SELECT (SELECT count(*) FROM run_copy WHERE run = ? AND changed > 0),
			(SELECT count(*) FROM audit_file JOIN audit_log USING (origin) WHERE node = 'a' AND first = 1)`,
			[]any{l.id}, &ofRun, &ofLog)
		if err != nil {
			l.t.Fatal(err)
		}
		return ofRun == 2 && ofLog >= full
	})
}

// lose kills node a and removes its records, recordings, files and keys.
func (l *lostRun) lose() {
	l.t.Helper()
	l.a.end(syscall.SIGKILL)
	for _, lost := range []string{"audit", "attachments", "recordings", "keys"} {
		if err := os.RemoveAll(filepath.Join(l.a.home, lost)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// shownTo returns the page of the run at a node as a person sees it, when node a counts as lost.
func (l *lostRun) shownTo(n *node, token string) string {
	l.t.Helper()
	p := n.person(token)
	var page string
	l.await(n, "showing the run", func() bool {
		page = p.page("/runs/" + l.id)
		return strings.Contains(page, lostNode)
	})
	for path, want := range map[string]string{"/files/table.csv": "a,b", "/text/code": "6 * 7"} {
		if got := p.page("/runs/" + l.id + path); !strings.Contains(got, want) {
			l.t.Errorf("%s has no %q: %s", path, want, got)
		}
	}
	return page
}

// issue 28: when a node is lost with its disk, the console of another one shows its runs from copies of its records, to
// their owner alone.
func TestARunOfALostNode(t *testing.T) {
	for name, settings := range map[string]string{
		"replicated": "{durability: replicated}",
		"full files": "{keep: 4m}", // a file is full after 24 s; the copies are removed after the 4 minutes
	} {
		t.Run(name, func(t *testing.T) {
			objects := t.TempDir()
			g := newRoutedGroup(t)
			g.more = fmt.Sprintf("  objects: %q\n%saudit: %s\n", "file://"+objects, g.more, settings)
			l := beginLost(t, g)
			full := 0
			if name == "full files" {
				time.Sleep(25 * time.Second) // a node ends an old file when it starts
				l.a.end(syscall.SIGTERM)
				l.a.serve()
				full = 1
			}
			l.awaitCopies(g, full)
			l.lose()
			page := l.shownTo(l.b, l.ann)
			for _, want := range []string{">ok<", "alpha/change", "table.csv", "6 * 7", ">Result<"} {
				if !strings.Contains(page, want) {
					t.Errorf("the page of the run has no %q: %s", want, page)
				}
			}
			others := l.b.person(l.ben)
			for _, path := range []string{"", "/now", "/files/table.csv", "/text/code"} {
				if got := others.page("/runs/" + l.id + path); !strings.Contains(got, errAway) {
					t.Errorf("another account reads %q: %s", path, got)
				}
			}
			records := "/v1/records?run=" + l.id
			if text := l.b.get(records, l.ann); !strings.Contains(text, `"kind":"run_end"`) ||
				!strings.Contains(text, lostNode) {
				t.Errorf("%s: %s", records, text)
			}
			if status, text, err := l.b.tryGet(records, l.ben); err != nil || status != http.StatusForbidden {
				t.Errorf("%s of another account: %d %s, %v", records, status, text, err)
			}
			if shown := l.b.said("audit", "show", l.id, "--cluster"); !strings.Contains(shown, "node a") ||
				!strings.Contains(shown, "alpha/change") || !strings.Contains(shown, lostNode) {
				t.Errorf("airlock audit show: %s", shown)
			}
			if out, err := l.b.plain("runs", "show", l.id).CombinedOutput(); err == nil ||
				!strings.Contains(string(out), "hint: airlock audit show "+l.id+" --cluster") {
				t.Errorf("airlock runs show: %v\n%s", err, out)
			}
			l.a.serve() // with another log
			if page := l.shownTo(l.a, l.ann); !strings.Contains(page, "alpha/change") {
				t.Errorf("the page at the next node a: %s", page)
			}
		})
	}
}
