package doors

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// objects are those of the owner, ann, that callers try to reach through one door.
type objects struct {
	run, job, question, agent, token string

	roleQuestion string // asks the role support
	grant        string // of the owner's calls
	roleGrant    string // of the owner's calls, given by the role support

	suspended string // a run that waits without a sandbox
	left      string // the same, of a session that has ended
}

// The programs of the owner: one makes a file and ends, the others wait for a person.
const (
	ending     = "client.attach(b'a,b', 'text/csv', 'table.csv')\nresult = 1"
	asking     = "from servers.alpha import change\nawait change({})"
	askingRole = "from servers.beta import change\nawait change({})"
)

// newToken makes a token of the owner without a profile, and returns its ID.
func (d *daemon) newToken() string {
	return d.made(d.prints("tokens", "create", "y", "--for", "ann", "--json"), `"token_id":"([^"]+)"`)
}

// objectsOf makes the objects of the owner, in its sessions of one revision.
func objectsOf(d *daemon, revision string) objects {
	d.Helper()
	var o objects
	host := d.host("owner", "/mcp", revision)
	made := func(code string, background bool) string {
		return d.made(calls(d, host, "run_code",
			map[string]any{"language": "python", "code": code, "background": background}), `"run_id":"([^"]+)"`)
	}
	o.run = made(ending, false)
	asks := func(code string) string { return d.questionOf(made(code, true)) }
	o.question, o.roleQuestion, o.token = asks(asking), asks(askingRole), d.newToken()
	o.grant, o.roleGrant = d.grants("administrator"), d.grants("other, role")
	o.suspended, o.left = d.suspends(revision), d.leaves(revision)
	o.job = d.made(calls(d, d.host("owner", "/gateway/mcp", revision), "execute_python_code",
		map[string]any{"code": "import time\ntime.sleep(600)", "background": true}), `request ([0-9a-f-]{36})`)
	status, body := d.post("owner", "/v1/agents", `{"name": "analyst", "type": "supervised"}`)
	if status != http.StatusCreated {
		d.Fatalf("registering an agent: got %d %s", status, body)
	}
	o.agent = d.made(body, `"agent_id":"([^"]+)"`)
	return o
}

// questionOf returns the question that a run of the owner asks.
func (d *daemon) questionOf(run string) (question string) {
	d.Helper()
	d.settles("nobody is asked", func() bool {
		_, body := d.browser("owner").page("/runs/" + run)
		at := strings.Index(body, "/questions/apr_")
		if at < 0 {
			return false
		}
		question = d.made(body[at:], `/questions/(apr_[^"/?]+)`)
		return true
	})
	return question
}

// asks begins a run of the owner that asks a question, and returns the question.
func (d *daemon) asks(code string) string {
	d.Helper()
	return d.questionOf(d.made(calls(d, d.host("owner", "/mcp", eras[0]), "run_code",
		map[string]any{"language": "python", "code": code, "background": true}), `"run_id":"([^"]+)"`))
}

// suspends begins a run of the owner that waits for a person without a sandbox.
func (d *daemon) suspends(revision string) (run string) {
	d.Helper()
	return d.suspendsFor(d.host("owner", "/mcp", revision))
}

func (d *daemon) suspendsFor(host *mcp.ClientSession) (run string) {
	d.Helper()
	run = d.made(calls(d, host, "run_code",
		map[string]any{"language": "python", "code": asking, "background": true}), `"run_id":"([^"]+)"`)
	d.questionOf(run)
	d.prints("runs", "suspend", run)
	return run
}

// leaves is suspends for a session that ends.
func (d *daemon) leaves(revision string) (run string) {
	d.Helper()
	host := d.connects("owner", "/mcp", revision)
	run = d.suspendsFor(host)
	if err := host.Close(); err != nil {
		d.Fatal(err)
	}
	return run
}

// grants has a caller approve a run of the owner, and returns the grant.
func (d *daemon) grants(giver string) (grant string) {
	d.Helper()
	code := asking
	if giver == "other, role" {
		code = askingRole
	}
	question := d.asks(code)
	status, shown := d.get(giver, "/v1/approvals/"+question)
	if status != http.StatusOK {
		_, open := d.get("administrator", "/v1/approvals")
		_, mine := d.get(giver, "/v1/approvals")
		d.Fatalf("the question %s: got %d %s for the %s, who sees %s; open are %s", question, status, shown, giver,
			mine, open)
	}
	digest := d.made(shown, `"digest":"(sha256:[^"]+)"`)
	if status, body := d.post(giver, "/v1/approvals/"+question,
		`{"decision": "approve", "digest": "`+digest+`", "for": "run"}`); status != http.StatusOK {
		d.Fatalf("approving: got %d %s", status, body)
	}
	d.settles("there is no grant", func() bool {
		_, list := d.get("administrator", "/v1/grants")
		for _, part := range strings.Split(list, `"id":"grant_`)[1:] {
			if grant = "grant_" + part[:strings.IndexByte(part, '"')]; !d.known[grant] {
				d.known[grant] = true
				return true
			}
		}
		return false
	})
	return grant
}
