package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

const settings = `
agents: {rate: %s, prices: {calculate: 1, send_email: 0}}
sandbox: {pool: 0, maxSandboxes: %d, timeout: 10m}
verify: {pool: 0}
cluster:
  database: {from: env:AIRLOCK_DATABASE_URL}
  key: {from: "file:%s"}
  node: %s
  advertise: https://%s:0
`

// group is the nodes of one cluster.
type group struct {
	*testing.T
	built   testenv.Env
	address string // of the database
	key     string
	slots   int      // sandboxes of each node; 0: 8
	rate    string   // of requests of agents; empty: 100000/m
	more    string   // settings of all nodes
	images  []string // of each node, see testenv.NewHome
}

func newGroup(t *testing.T) *group {
	t.Helper()
	built := testenv.Sandbox(t)
	return newGroupAt(t, built, databasetest.Schema(t))
}

// newGroupAt returns a cluster with the database of an address.
func newGroupAt(t *testing.T, built testenv.Env, address string) *group {
	t.Helper()
	g := &group{T: t, built: built, address: address, key: filepath.Join(t.TempDir(), "cluster.key"),
		images: []string{"python"}}
	cmd := g.command("cluster", "key", g.key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return g
}

func (g *group) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(testenv.RepoRoot(g.T), "bin", "airlock"), args...)
	cmd.Env = append(os.Environ(), "AIRLOCK_RUNSC="+g.built.Runsc, "AIRLOCK_CONFIG=", "AIRLOCK_DATABASE_URL="+g.address)
	return cmd
}

// node is one machine of a cluster.
type node struct {
	*group
	home, file, address string // the address is that of the database as this node reaches it
	listen              string // empty: a free port
	url                 string
	process             *exec.Cmd
	machine             *machine // nil: this one
	program             string   // empty: bin/airlock
}

func (g *group) node(name string) *node {
	g.Helper()
	return g.nodeOn(nil, name)
}

// nodeOn returns a node on another machine.
func (g *group) nodeOn(m *machine, name string) *node {
	g.Helper()
	home := testenv.NewHome(g.T, g.built, g.images...)
	n := &node{group: g, home: home, file: filepath.Join(home, "airlock.yaml"), address: g.address, machine: m}
	text := fmt.Appendf(nil, settings+g.more, cmp.Or(g.rate, "100000/m"), cmp.Or(g.slots, 8), g.key, name, n.host())
	if err := os.WriteFile(n.file, text, 0o600); err != nil {
		g.Fatal(err)
	}
	return n
}

func (n *node) command(args ...string) *exec.Cmd {
	cmd := n.group.command(append(args, "--config", n.file)...)
	cmd.Path = cmp.Or(n.program, cmd.Path)
	if n.machine != nil {
		n.machine.enter(cmd)
	}
	cmd.Env = append(cmd.Env, "AIRLOCK_HOME="+n.home, "AIRLOCK_DATABASE_URL="+n.address)
	return cmd
}

// airlock runs a verb at a terminal, and decodes the JSON that it prints if into is not nil.
func (n *node) airlock(into any, args ...string) {
	n.Helper()
	if into != nil {
		args = append(args, "--json")
	}
	cmd := testenv.AtTerminal(n.T, n.command(args...))
	cmd.Stderr = n.Output()
	out, err := cmd.Output()
	if err == nil && into != nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		n.Fatalf("airlock %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// host returns the IP address of the node.
func (n *node) host() string {
	if n.machine == nil {
		return "127.0.0.1"
	}
	return n.machine.address
}

// serve starts the node until the test ends.
func (n *node) serve() *node {
	n.Helper()
	if err := n.start(); err != nil {
		n.Fatalf("node %s does not serve: %v", n.file, err)
	}
	return n
}

// start is serve for a node that may not find the database.
func (n *node) start() error {
	n.Helper()
	n.process = n.command("serve", "--listen", cmp.Or(n.listen, n.host()+":0"))
	n.process.Env = append(n.process.Env, "QWED_MCP_TRUSTED_CODE_EXECUTION=true")
	n.process.Stderr = n.Output()
	out, err := n.process.StdoutPipe()
	if err == nil {
		err = n.process.Start()
	}
	if err != nil {
		return err
	}
	process := n.process
	n.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM) // it may have been killed
		_ = process.Process.Signal(syscall.SIGCONT) // or stopped
		_ = process.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		n.url = strings.TrimSpace(line)
	}
	return err
}

// post sends JSON with headers and returns the status and the answer.
func (n *node) post(path, header, value string, body any, more ...string) (int, map[string]any) {
	status, answer, err := n.try(path, header, value, body, more...)
	if err != nil {
		n.Error(err)
	}
	return status, answer
}

// try is post at a node that may have ended.
func (n *node) try(path, header, value string, body any, more ...string) (int, map[string]any, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(n.Context(), http.MethodPost, n.url+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set(header, value)
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	var decoded map[string]any
	raw, _ := io.ReadAll(answer.Body)
	_ = json.Unmarshal(raw, &decoded) // an event stream is no JSON
	return answer.StatusCode, decoded, nil
}

type agent struct{ id, token string }

// announce announces an action and returns the decision and the ID of the question.
func (n *node) announce(a agent, conversation, kind string) (decision, question string) {
	_, answer := n.post("/v1/agents/"+a.id+"/actions", "X-Agent-Token", a.token, map[string]any{
		"action":  map[string]any{"type": kind, "query": conversation},
		"context": map[string]any{"conversation_id": conversation, "step_number": 1}})
	decision, _ = answer["decision"].(string)
	question, _ = answer["approval_id"].(string)
	if decision == "" {
		n.Errorf("no decision: %v", answer)
	}
	return decision, question
}

// person uses the console of a node.
type person struct {
	node *node
	web  *http.Client
}

func (n *node) person(token string) *person {
	n.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		n.Fatal(err)
	}
	p := &person{n, &http.Client{Jar: jar}}
	p.send("/sign-in", url.Values{"token": {token}})
	return p
}

func (p *person) send(path string, form url.Values) string {
	r, err := http.NewRequestWithContext(p.node.Context(), http.MethodPost, p.node.url+path,
		strings.NewReader(form.Encode()))
	if err != nil {
		p.node.Error(err)
		return ""
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", p.node.url)
	return p.do(r)
}

func (p *person) page(path string) string {
	r, err := http.NewRequestWithContext(p.node.Context(), http.MethodGet, p.node.url+path, nil)
	if err != nil {
		p.node.Error(err)
		return ""
	}
	return p.do(r)
}

func (p *person) do(r *http.Request) string {
	answer, err := p.web.Do(r)
	if err != nil {
		p.node.Error(err)
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

var hidden = regexp.MustCompile(`name="(csrf|digest)" value="([^"]*)"`)

// form returns the hidden fields of a question's page. It waits until the node shows the question.
func (p *person) form(question string) url.Values {
	p.node.Helper()
	form := url.Values{"answer": {"allow"}}
	testenv.Await(p.node, question, func() bool {
		for _, field := range hidden.FindAllStringSubmatch(p.page("/questions/"+question), -1) {
			form.Set(field[1], field[2])
		}
		return form.Get("digest") != ""
	})
	return form
}

// link carries the connections of one node to the database until it is cut.
type link struct {
	dir, socket string

	mu       sync.Mutex // guards the fields below
	listener net.Listener
	open     map[net.Conn]bool
}

// through returns the address of the database through a link.
func (g *group) through() (*link, string) {
	g.Helper()
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { os.RemoveAll(dir) })
	u, err := url.Parse(g.address)
	if err != nil {
		g.Fatal(err)
	}
	l := &link{dir: dir, socket: filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"), open: map[net.Conn]bool{}}
	l.join(g.T)
	g.Cleanup(l.cut)
	return l, databasetest.With(g.address, "host", dir)
}

func (l *link) join(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(l.dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.listener = listener
	l.mu.Unlock()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", l.socket)
			if err != nil {
				from.Close()
				continue
			}
			l.mu.Lock()
			l.open[from], l.open[to] = true, true
			l.mu.Unlock()
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1]) // it ends with either connection
					pair[0].Close()
				}()
			}
		}
	}()
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
	for c := range l.open {
		c.Close()
	}
	clear(l.open)
}
