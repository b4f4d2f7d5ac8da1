package doors

import (
	"cmp"
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

// withdrawing is a door that withdraws a grant, given by a caller.
func withdrawing(giver string, withdraw func(d *daemon, who, grant string)) door {
	return door{"owner, without approval", once, func(d *daemon, _ objects, who, _ string) bool {
		if d.grant[giver] == "" { // the former one was withdrawn
			d.grant[giver] = d.grants(giver)
		}
		withdraw(d, who, d.grant[giver])
		if _, list := d.get("administrator", "/v1/grants"); strings.Contains(list, d.grant[giver]) {
			return false
		}
		d.grant[giver] = ""
		return true
	}}
}

// listing is a door that lists grants.
func listing(list func(d *daemon, who string) string, grant func(o objects) string) door {
	return door{"owner, without approval", once, func(d *daemon, o objects, who, _ string) bool {
		return strings.Contains(list(d, who), grant(o))
	}}
}

func inConsole(d *daemon, who string) string {
	_, body := d.browser(who).page("/questions")
	return body
}

func overAPI(d *daemon, who string) string { _, body := d.get(who, "/v1/grants"); return body }

func withdrawInConsole(d *daemon, who, grant string) {
	d.browser(who).post("/questions/grants/"+grant, url.Values{})
}

func withdrawOverAPI(d *daemon, who, grant string) {
	d.request(who, http.MethodDelete, "/v1/grants/"+grant, "")
}

func ofOwner(o objects) string { return o.grant }

func ofRole(o objects) string { return o.roleGrant }

// cancelling is a door that cancels a suspended run. cancel reports whether the run was found.
func cancelling(revisions []string, cancel func(d *daemon, who, revision, run string) bool) door {
	return door{"without run", revisions, func(d *daemon, _ objects, who, revision string) bool {
		if d.cancelled[revision] == "" { // the former one was cancelled
			d.cancelled[revision] = d.suspends(cmp.Or(revision, eras[0]))
		}
		run := d.cancelled[revision]
		over := func() bool {
			return strings.Contains(calls(d, d.host("administrator", "/mcp", eras[0]), "get_run",
				map[string]any{"run_id": run}), `"state":"done"`)
		}
		if !cancel(d, who, revision, run) {
			return over()
		}
		d.settles("the run is not cancelled", over)
		d.cancelled[revision] = ""
		return true
	}}
}

func fixed(path string) func(objects) string { return func(objects) string { return path } }

// local is a door for the user of the system. Sessions at this door have another owner.
func local(try func(d *daemon, o objects) bool) door {
	return door{"", once, func(d *daemon, o objects, _, _ string) bool { return try(d, o) }}
}

// joined returns a host of airlock mcp.
func (d *daemon) joined() *mcp.ClientSession {
	d.Helper()
	host, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(d.Context(),
		&mcp.CommandTransport{Command: d.command(d.Context(), "mcp")}, nil)
	if err != nil {
		d.Fatalf("%v\n%s", err, d.said)
	}
	return host
}

// getsRun reports whether a run is answered unlike one that does not exist.
func getsRun(d *daemon, session *mcp.ClientSession, id string) bool {
	return findsRun(d, session, "get_run", id)
}

func findsRun(d *daemon, session *mcp.ClientSession, tool, id string) bool {
	absent := "run_" + strings.Repeat("0", len(id)-len("run_"))
	missing := calls(d, session, tool, map[string]any{"run_id": absent})
	got := calls(d, session, tool, map[string]any{"run_id": id})
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
		host := d.joined()
		defer host.Close()
		return getsRun(d, host, o.run)
	}),
	"run, `airlock runs`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("runs", "list", "-n", "1000", "--json"), o.run)
	}),
	"suspended run, console": page("without run", func(o objects) string { return "/runs/" + o.suspended }),
	"suspended run, console, to cancel it": cancelling(once, func(d *daemon, who, _, run string) bool {
		status, _ := d.browser(who).post("/runs/"+run+"/cancel", url.Values{})
		return status == http.StatusSeeOther
	}),
	"suspended run, `/mcp`": {"without run", eras, func(d *daemon, o objects, who, revision string) bool {
		return getsRun(d, d.host(who, "/mcp", revision), o.suspended)
	}},
	"suspended run, `/mcp`, to cancel it": cancelling(eras, func(d *daemon, who, revision, run string) bool {
		return findsRun(d, d.host(who, "/mcp", revision), "cancel_run", run)
	}),
	"suspended run of an ended session, `/mcp`": {"without run", eras,
		func(d *daemon, o objects, who, revision string) bool {
			return getsRun(d, d.host(who, "/mcp", revision), o.left)
		}},
	"suspended run, `airlock mcp`": local(func(d *daemon, o objects) bool {
		host := d.joined()
		defer host.Close()
		return getsRun(d, host, o.suspended) || getsRun(d, host, o.left)
	}),
	"suspended run, `airlock runs`": local(func(d *daemon, o objects) bool {
		return strings.Contains(d.prints("runs", "list", "-n", "1000", "--json"), o.suspended)
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
	"grant, console":                                listing(inConsole, ofOwner),
	"grant, console, to withdraw it":                withdrawing("administrator", withdrawInConsole),
	"grant, `/v1/grants`":                           listing(overAPI, ofOwner),
	"grant, `/v1/grants`, to withdraw it":           withdrawing("administrator", withdrawOverAPI),
	"grant of a role, console":                      listing(inConsole, ofRole),
	"grant of a role, console, to withdraw it":      withdrawing("other, role", withdrawInConsole),
	"grant of a role, `/v1/grants`":                 listing(overAPI, ofRole),
	"grant of a role, `/v1/grants`, to withdraw it": withdrawing("other, role", withdrawOverAPI),
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
		return strings.Contains(d.prints("audit", "tail", "-n", "2000", "--json"), o.run)
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
			status, _ := d.browser("owner").page("/tools/one?server=beta&tool=look") // its tools are known
			return status == http.StatusOK
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
	d := start(t, "verify")
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
