package doors

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// objects are those of the owner, ann, that callers try to reach through one door.
type objects struct {
	run, job, question, agent, token string

	roleQuestion string // asks the role support
	grant        string // of the owner's calls
}

// door is how a caller tries an object. It reports whether the caller has reached it.
type door struct {
	narrow    string // the caller with all scopes but the one that is needed
	revisions []string
	try       func(d *daemon, o objects, who, revision string) bool
}

var (
	eras = []string{"2025-11-25", "2026-07-28"}
	once = []string{""}
)

// page is a door of the console: a page that callers can see.
func page(narrow string, path func(o objects) string) door {
	return door{narrow, once, func(d *daemon, o objects, who, _ string) bool {
		status, _ := d.browser(who).page(path(o))
		return status == http.StatusOK
	}}
}

// answering is a door of the console that answers a question.
func answering(question func(o objects) string) door {
	return door{"owner, without approval", once, func(d *daemon, o objects, who, _ string) bool {
		form := url.Values{"answer": {"deny"}, "digest": {"other"}}
		status, _ := d.browser(who).post("/questions/"+question(o), form)
		return status == http.StatusConflict // the digest is not that of the question, so it stays open
	}}
}

// asked is a door of the API that shows a question.
func asked(question func(o objects) string) door {
	return door{"owner, without approval", once, func(d *daemon, o objects, who, _ string) bool {
		status, body := d.get(who, "/v1/approvals/"+question(o))
		_, list := d.get(who, "/v1/approvals")
		if listed := strings.Contains(list, question(o)); listed != (status == http.StatusOK) {
			d.Errorf("%s by %s: listed %t, but got %d %s", question(o), who, listed, status, body)
		}
		return status == http.StatusOK
	}}
}

// answers is a door of the API that answers a question.
func answers(question func(o objects) string) door {
	return door{"owner, without approval", once, func(d *daemon, o objects, who, _ string) bool {
		status, _ := d.post(who, "/v1/approvals/"+question(o), `{"decision": "deny", "digest": "other"}`)
		return status == http.StatusConflict // as in answering
	}}
}

// withdrawing is a door that withdraws a grant.
func withdrawing(withdraw func(d *daemon, who, grant string)) door {
	return door{"owner, without approval", once, func(d *daemon, _ objects, who, _ string) bool {
		if d.grant == "" { // the former one was withdrawn
			d.grant = d.grants()
		}
		withdraw(d, who, d.grant)
		if _, list := d.get("administrator", "/v1/grants"); strings.Contains(list, d.grant) {
			return false
		}
		d.grant = ""
		return true
	}}
}

func fixed(path string) func(objects) string { return func(objects) string { return path } }

// local is a door for the user of the system. Sessions at this door have another owner.
func local(try func(d *daemon, o objects) bool) door {
	return door{"", once, func(d *daemon, o objects, _, _ string) bool { return try(d, o) }}
}

// getsRun reports whether a run is answered unlike one that does not exist.
func getsRun(d *daemon, session *mcp.ClientSession, id string) bool {
	absent := "run_" + strings.Repeat("0", len(id)-len("run_"))
	got := calls(d, session, "get_run", map[string]any{"run_id": id})
	missing := calls(d, session, "get_run", map[string]any{"run_id": absent})
	return got != "" && strings.ReplaceAll(got, id, absent) != missing
}

// doors are the rows of the table in docs/serving.md.
var doors = map[string]door{
	"run, console": page("without run", func(o objects) string { return "/runs/" + o.run }),
	"run, `/mcp`": {"without run", eras, func(d *daemon, o objects, who, revision string) bool {
		return getsRun(d, d.host(who, "/mcp", revision), o.run)
	}},
	"run, `/gateway/mcp`": {"without run", eras, func(d *daemon, o objects, who, revision string) bool {
		return strings.Contains(calls(d, d.host(who, "/gateway/mcp", revision), "verification_status",
			map[string]any{"job_id": o.job}), "Status: ")
	}},
	"run, `airlock mcp`": local(func(d *daemon, o objects) bool {
		host, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(d.Context(),
			&mcp.CommandTransport{Command: d.command(d.Context(), "mcp")}, nil)
		if err != nil {
			d.Fatalf("%v\n%s", err, d.said)
		}
		defer host.Close()
		return getsRun(d, host, o.run)
	}),
	"run, `airlock runs`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("runs", "list", "--json"), o.run)
	}),
	"question, console": page("owner, without approval",
		func(o objects) string { return "/questions/" + o.question }),
	"question, console, to answer it": answering(func(o objects) string { return o.question }),
	"question of a role, console": page("owner, without approval",
		func(o objects) string { return "/questions/" + o.roleQuestion }),
	"question of a role, console, to answer it": answering(func(o objects) string { return o.roleQuestion }),
	"question, `/v1/approvals`":                 asked(func(o objects) string { return o.question }),
	"question of a role, `/v1/approvals`":       asked(func(o objects) string { return o.roleQuestion }),
	"question, `/v1/approvals`, its coverage": {"owner, without approval", once,
		func(d *daemon, o objects, who, _ string) bool {
			status, _ := d.get(who, "/v1/approvals/"+o.question+"/coverage")
			return status == http.StatusOK
		}},
	"question, `/v1/approvals`, to answer it":           answers(func(o objects) string { return o.question }),
	"question of a role, `/v1/approvals`, to answer it": answers(func(o objects) string { return o.roleQuestion }),
	"question, link of a message": {"owner, without approval", once,
		func(d *daemon, _ objects, who, _ string) bool {
			if d.link == "" { // the former one was used
				question := d.asks(asking)
				d.settles("no message has a link", func() bool {
					d.link = d.chat.linkTo(question)
					return d.link != ""
				})
			}
			r, err := http.NewRequestWithContext(d.Context(), http.MethodPost, d.url+"/ask",
				strings.NewReader(url.Values{"code": {d.link}}.Encode()))
			if err != nil {
				d.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			answer, err := d.browser(who).client.Do(r)
			if err != nil {
				d.Fatal(err)
			}
			answer.Body.Close()
			reached := strings.HasPrefix(answer.Header.Get("Location"), "/questions/apr_")
			if reached {
				d.link = ""
			}
			return reached
		}},
	"grant, console": {"owner, without approval", once, func(d *daemon, o objects, who, _ string) bool {
		_, body := d.browser(who).page("/questions")
		return strings.Contains(body, o.grant)
	}},
	"grant, console, to withdraw it": withdrawing(func(d *daemon, who, grant string) {
		d.browser(who).post("/questions/grants/"+grant, url.Values{})
	}),
	"grant, `/v1/grants`": {"owner, without approval", once, func(d *daemon, o objects, who, _ string) bool {
		_, body := d.get(who, "/v1/grants")
		return strings.Contains(body, o.grant)
	}},
	"grant, `/v1/grants`, to withdraw it": withdrawing(func(d *daemon, who, grant string) {
		d.request(who, http.MethodDelete, "/v1/grants/"+grant, "")
	}),
	"grant, `airlock approvals`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("approvals", "grants", "--json"), o.grant)
	}),
	"question, `airlock approvals`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("approvals", "list"), o.question)
	}),
	"file, console": page("without run", func(o objects) string { return "/runs/" + o.run + "/files/table.csv" }),
	"file, resource of `/mcp`": {"without run", eras, func(d *daemon, o objects, who, revision string) bool {
		return strings.Contains(reads(d, d.host(who, "/mcp", revision), "airlock://runs/"+o.run+"/table.csv"), "a,b")
	}},
	"recording, console": page("without run", func(o objects) string { return "/runs/" + o.run + "/text/code" }),
	"log, console":       page("with run only", fixed("/audit")),
	"log, `/metrics`": {"with run only", once, func(d *daemon, _ objects, who, _ string) bool {
		status, _ := d.get(who, "/metrics")
		return status == http.StatusOK
	}},
	"log, resource of `/kernel/mcp`": {"with run only", eras, func(d *daemon, _ objects, who, revision string) bool {
		return reads(d, d.host(who, "/kernel/mcp", revision), "audit://") != ""
	}},
	"log, `airlock audit`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("audit", "tail", "-n", "200", "--json"), o.run)
	}),
	"server, console": {"without run", once, func(d *daemon, _ objects, who, _ string) bool {
		_, body := d.browser(who).page("/servers")
		return strings.Contains(body, `<th scope="row">beta`)
	}},
	"server, console, to disable it": {"without run", once, func(d *daemon, _ objects, who, _ string) bool {
		before, err := os.ReadFile(d.file)
		if err != nil {
			d.Fatal(err)
		}
		if status, _ := d.browser(who).post("/servers/beta/disable", url.Values{}); status != http.StatusSeeOther {
			return false
		}
		after, err := os.ReadFile(d.file)
		if err != nil {
			d.Fatal(err)
		}
		if string(before) == string(after) {
			return false
		}
		d.browser(who).post("/servers/beta/enable", url.Values{})
		d.settles("beta is not enabled again", func() bool {
			_, body := d.browser("owner").page("/servers")
			return strings.Contains(body, `<th scope="row">beta`)
		})
		return true
	}},
	"tool, console": page("without run", fixed("/tools/one?server=beta&tool=look")),
	"tool, `/mcp`": {"without run", eras, func(d *daemon, _ objects, who, revision string) bool {
		return strings.Contains(calls(d, d.host(who, "/mcp", revision), "get_tool_definition",
			map[string]any{"server": "beta", "tool": "look"}), "look in beta")
	}},
	"agent, console": page("with run only", func(o objects) string { return "/agents/" + o.agent }),
	"agent, `/v1`": {"with run only", once, func(d *daemon, o objects, who, _ string) bool {
		status, _ := d.get(who, "/v1/agents/"+o.agent)
		return status == http.StatusOK
	}},
	"agent, resource of `/kernel/mcp`": {"with run only", eras, func(d *daemon, o objects, who, revision string) bool {
		return strings.Contains(reads(d, d.host(who, "/kernel/mcp", revision), "vfs://"), o.agent)
	}},
	"agent, `airlock agents`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("agents", "list", "--json"), o.agent)
	}),
	"token, console": {"with run only", once, func(d *daemon, o objects, who, _ string) bool {
		_, body := d.browser(who).page("/tokens")
		return strings.Contains(body, o.token)
	}},
	"token, console, to make one for its owner": {"with run only", once,
		func(d *daemon, _ objects, who, _ string) bool {
			status, body := d.browser(who).post("/tokens", url.Values{"name": {"made"}, "principal": {"ann"},
				"scope": {"run"}, "life": {"1 day"}})
			if status != http.StatusForbidden && status != http.StatusOK {
				d.Errorf("a token for another principal by %s: got %d %s", who, status, body)
			}
			return status == http.StatusOK
		}},
	"token, console, to revoke it": {"with run only", once, func(d *daemon, _ objects, who, _ string) bool {
		status, _ := d.browser(who).post("/tokens/"+d.newToken()+"/revoke", url.Values{})
		return status == http.StatusSeeOther
	}},
	"token, `airlock tokens`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("tokens", "list", "--json"), o.token)
	}),
	"configuration, console": page("without run", fixed("/configuration")),
	"configuration, console, to confirm it": {"without run", once, func(d *daemon, _ objects, who, _ string) bool {
		status, _ := d.browser(who).post("/configuration/confirm", url.Values{"digest": {"other"}})
		return status == http.StatusConflict
	}},
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
	o.question, o.roleQuestion, o.token, o.grant = asks(asking), asks(askingRole), d.newToken(), d.grants()
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

// grants has an administrator approve a run of the owner, and returns the grant.
func (d *daemon) grants() (grant string) {
	d.Helper()
	question := d.asks(asking)
	_, shown := d.get("administrator", "/v1/approvals/"+question)
	digest := d.made(shown, `"digest":"(sha256:[^"]+)"`)
	if status, body := d.post("administrator", "/v1/approvals/"+question,
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

func (d *daemon) post(who, path, body string) (status int, answer string) {
	d.Helper()
	return d.request(who, http.MethodPost, path, body)
}

func (d *daemon) request(who, method, path, body string) (status int, answer string) {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.tokens[who])
	return d.do(http.DefaultClient, r)
}

// documented returns the cells of the table in docs/serving.md: row, then column.
func documented(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "docs", "serving.md"))
	if err != nil {
		t.Fatal(err)
	}
	const head = "| object | door | owner |"
	_, table, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("docs/serving.md has no table with %s", head)
	}
	columns := strings.Split(strings.Trim(head+strings.SplitN(table, "\n", 2)[0], "| "), " | ")
	cells := map[string]map[string]string{}
	for line := range strings.Lines(strings.SplitN(table, "\n", 3)[2]) {
		fields := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if len(fields) != len(columns) {
			break
		}
		row := map[string]string{}
		for i := 2; i < len(fields); i++ {
			row[columns[i]] = fields[i]
		}
		cells[fields[0]+", "+fields[1]] = row
	}
	return cells
}

// Issue 23: each door had its own rules. The test goes through each cell of the table.
func TestEveryDoorHasTheRulesOfTheTable(t *testing.T) {
	table := documented(t)
	for row := range table {
		if _, tried := doors[row]; !tried {
			t.Errorf("the row %q of docs/serving.md is not tried", row)
		}
	}
	d := start(t)
	made := map[string]objects{}
	for _, revision := range eras {
		made[revision] = objectsOf(d, revision)
	}
	for name, door := range doors {
		if _, documented := table[name]; !documented {
			t.Errorf("docs/serving.md has no row %q", name)
		}
		for column, cell := range table[name] {
			if !slices.Contains([]string{"yes", "no", "–"}, cell) {
				t.Errorf("%s, %s: the cell is %q", name, column, cell)
			}
			if cell == "–" {
				continue
			}
			who := column
			if column == "without the scope" {
				who = door.narrow
			}
			for _, revision := range door.revisions {
				o, known := made[revision]
				if !known {
					o = made[eras[0]]
				}
				if got, want := door.try(d, o, who, revision), cell == "yes"; got != want {
					t.Errorf("%s by %s %s: reached: got %t, want %t", name, column, revision, got, want)
				}
			}
		}
	}
}
